-- Delete finished tasks, of each status the oldest first; their keys go with them.
-- Params: :cutoff_ms bigint (finished at or before), :before_id text (no row from this id on is read: a task cannot
--   have finished before it was submitted), :limit bigint; filters, each optional: :statuses text[], :queue, :name text.
-- Result: id. Locks: rows FOR UPDATE SKIP LOCKED, so that a task retried meanwhile survives.
-- The bounds are pairs so that only the index of finished rows has their order: the primary key would be walked
-- through every old task that still waits.
with doomed as materialized (
    select t.id
    from unnest(:statuses::text[]) as s (status)
    cross join lateral (
        select t.id from cairnq_tasks t
        where (t.status, t.id) > (s.status, '') and (t.status, t.id) < (s.status, :before_id::text)
            and t.status in ('succeeded', 'failed', 'canceled')
            and t.completed_at_ms <= :cutoff_ms::bigint
            and t.queue = :queue::text -- if queue
            and t.name = :name::text -- if name
        order by t.status, t.id
        limit :limit::bigint
        for update skip locked
    ) t
    limit :limit::bigint
)
delete from cairnq_tasks t
where t.id = any (array(select d.id from doomed d))
returning t.id
