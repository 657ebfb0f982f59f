-- Where attempts stand, asked after a write of them matched no row.
-- Params: :worker_id text; arrays of one length :ids text[], :attempts integer[].
-- Result: id, attempt, `held` or `expired` or `ended`; a row for each attempt asked. Locks: none.
select a.id, a.attempt,
    case
        when t.status = 'running' and t.worker_id = :worker_id::text and t.attempt = a.attempt
            then case when t.lease_until_ms > (select @now_ms) then 'held' else 'expired' end
        else 'ended'
    end
from unnest(:ids::text[], :attempts::integer[]) as a (id, attempt)
left join cairnq_tasks t on t.id = a.id and t.id = any (:ids::text[])
