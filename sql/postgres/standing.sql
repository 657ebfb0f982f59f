-- Where attempts stand, asked after a write of them matched no row or had no reply.
-- Params: arrays of one length :ids text[], :worker_ids text[], :attempts integer[].
-- Result: id, worker_id, attempt, standing; a row for each one asked. Of one that ended as this attempt the standing is
-- the task's status; `gone` is a row that is not there, `ended` one that is another attempt's or nobody's. Locks: none.
select a.id, a.worker_id, a.attempt,
    case
        when t.id is null then 'gone'
        when t.status = 'queued' or t.worker_id is distinct from a.worker_id or t.attempt <> a.attempt then 'ended'
        when t.status <> 'running' then t.status
        when t.lease_until_ms > (select @now_ms) then 'held'
        else 'expired'
    end
from unnest(:ids::text[], :worker_ids::text[], :attempts::integer[]) as a (id, worker_id, attempt)
left join cairnq_tasks t on t.id = a.id and t.id = any (:ids::text[])
