-- Claim up to :limit due tasks of any name from :queues, highest priority first, then run_at, then id.
-- Params: :queues JSON array, :worker_id, :lease_ms, :limit. Result: task columns, in no order. Locks: the file's writer.
-- The ladder steps through the priorities that are present, so that a priority full of rows in backoff costs one look
-- and not a walk; at each, every source's first rows come as a JSON array, which is how a limit by source is spelled
-- where there is no lateral join. The outer limit stops the ladder.
with recursive
source (queue, name) as (select q.value, null from json_each(:queues) q),
@ladder,
@picked
update cairnq_tasks as t
set status = 'running',
    attempt = t.attempt + 1,
    worker_id = :worker_id,
    lease_until_ms = @now_ms + :lease_ms,
    updated_at_ms = @now_ms
where t.id in (select p.id from picked p)
returning @returned_columns
