-- Renew many leases, of any number of workers, in one statement.
-- Params: arrays of one length :ids, :worker_ids, :attempts (null: whichever is held), :leases_ms.
-- Variant `lapsed_too`: after a step of the clock, whatever the lease says.
-- Result: id, worker_id, attempt, whether a cancel was asked. A row that is missing was not held. Locks: the file's writer.
-- SQLite 3.40 answers `is not null` in `returning` with true whatever the column holds, hence the coalesce.
with beat (id, worker_id, attempt, lease_ms) as materialized (
    select json_extract(b.value, '$[0]'), json_extract(b.value, '$[1]'),
        json_extract(b.value, '$[2]'), json_extract(b.value, '$[3]')
    from json_each(:(ids, worker_ids, attempts, leases_ms)) b
),
held as materialized (
    select t.id, b.lease_ms
    from beat b
    cross join cairnq_tasks t on t.id = b.id
    where t.status = 'running'
        and +t.worker_id = b.worker_id
        and (b.attempt is null or t.attempt = b.attempt)
        and t.lease_until_ms > (select @now_ms) -- unless lapsed_too
)
update cairnq_tasks as t
set lease_until_ms = @now_ms + h.lease_ms,
    updated_at_ms = @now_ms
from held h
where t.id = h.id
returning id, worker_id, attempt, coalesce(cancel_requested_at_ms, 0) <> 0
