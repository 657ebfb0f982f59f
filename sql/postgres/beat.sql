-- Renew many leases, of any number of workers, in one statement.
-- Params: arrays of one length :ids text[], :worker_ids text[], :attempts integer[] (null: whichever is held),
--   :leases_ms bigint[]. Result: id, worker_id, attempt, whether a cancel was asked. A row that is missing was not
--   held, or its lock was.
-- Locks: rows in id order, SKIP LOCKED, so that one locked row does not freeze the beat of all others (the variant
--   `waiting` waits: for one task, whose holder would take a locked row for a lost lease). Found by id alone, as in settle.
with beat as materialized (
    select b.id, b.worker_id, b.attempt, b.lease_ms
    from unnest(:ids::text[], :worker_ids::text[], :attempts::integer[], :leases_ms::bigint[])
        as b (id, worker_id, attempt, lease_ms)
    order by b.id
),
held as materialized (
    select l.id, l.place, b.lease_ms
    from beat b
    cross join lateral (
        select t.id, t.ctid as place
        from cairnq_tasks t
        where t.id = b.id
            and t.status = (select 'running')
            and t.worker_id is not distinct from b.worker_id
            and (b.attempt is null or t.attempt = b.attempt)
            and t.lease_until_ms > (select @now_ms)
        for no key update
        skip locked -- unless waiting
    ) l
)
update cairnq_tasks t
set lease_until_ms = @now_ms + h.lease_ms,
    updated_at_ms = @now_ms
from held h
where t.ctid = h.place -- unless waiting
where t.id = h.id and t.id = any (array(select a.id from held a)) and t.lease_until_ms > @now_ms -- if waiting
returning t.id, t.worker_id, t.attempt, t.cancel_requested_at_ms is not null
