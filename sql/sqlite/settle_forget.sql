-- Settle successes of handlers that forget: the row is removed, unless a key points at it or a cancel was asked.
-- Params: :worker_id; arrays of one length :ids, :attempts. Result: id, and that the row is removed. A row that is missing was not held,
-- or must be kept. Locks: the file's writer.
with settlement (id, attempt) as materialized (
    select json_extract(s.value, '$[0]'), json_extract(s.value, '$[1]') from json_each(:(ids, attempts)) s
)
delete from cairnq_tasks
where id in (
    select t.id
    from settlement s
    cross join cairnq_tasks t on t.id = s.id
    where t.status = 'running'
        and +t.worker_id = :worker_id
        and t.attempt = s.attempt
        and t.lease_until_ms > (select @now_ms)
        and t.cancel_requested_at_ms is null
        and not exists (select 1 from cairnq_task_keys k where k.task_id = t.id)
)
returning id, true
