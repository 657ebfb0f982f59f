-- Settle successes of handlers that forget: the row is removed, unless a key points at it or a cancel was asked.
-- Params: :worker_id text; arrays of one length :ids text[], :attempts integer[].
-- Result: id, and whether the row is removed: if not, a beat moved it between this statement's snapshot and its
-- lock, so ask again. A row that is missing was not held, or its lock was, or it must be kept.
-- Locks: rows in id order, FOR UPDATE (they are deleted) SKIP LOCKED; then each is found by its place, as a descent
-- of the primary key for each costs a seventh more. Sends cairnq_done for each removed row.
with settlement as materialized (
    select s.id, s.attempt
    from unnest(:ids::text[], :attempts::integer[]) as s (id, attempt)
    order by s.id
),
held as materialized (
    select l.id, l.place
    from settlement s
    cross join lateral (
        select t.id, t.ctid as place
        from cairnq_tasks t
        where t.id = s.id
            and t.status = (select 'running')
            and t.worker_id is not distinct from :worker_id::text
            and t.attempt = s.attempt
            and t.lease_until_ms > (select @now_ms)
            and t.cancel_requested_at_ms is null
        for update skip locked
    ) l
),
free as materialized (
    select h.id, h.place from held h where not exists (select from cairnq_task_keys k where k.task_id = h.id)
),
removed as (
    delete from cairnq_tasks t
    where t.ctid = any (array(select f.place from free f))
    returning t.id
)
select r.id, true, pg_notify('cairnq_done', r.id)::text from removed r
union all
select f.id, false, null from free f where f.id not in (select r.id from removed r)
