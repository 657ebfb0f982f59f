-- Delete finished tasks, oldest first; their keys go with them.
-- Params: :cutoff_ms (finished at or before), :before_id (no row from this id on is read: a task cannot have finished
--   before it was submitted), :limit; filters, each optional: :statuses JSON array, :queue, :name.
-- Result: id. Locks: the file's writer.
delete from cairnq_tasks
where id in (
    select t.id
    from json_each(:statuses) s
    cross join cairnq_tasks t indexed by cairnq_lean_finished_idx
    where t.status in ('succeeded', 'failed', 'canceled')
        and t.status = s.value and t.id < :before_id
        and t.completed_at_ms <= :cutoff_ms
        and t.queue = :queue -- if queue
        and t.name = :name -- if name
    limit :limit
)
returning id
