-- Where attempts stand, asked after a write of them matched no row.
-- Params: :worker_id; arrays of one length :ids, :attempts.
-- Result: id, attempt, `held` or `expired` or `ended`; a row for each attempt asked. Locks: none.
select json_extract(a.value, '$[0]'), json_extract(a.value, '$[1]'),
    case
        when t.status = 'running' and t.worker_id = :worker_id and t.attempt = json_extract(a.value, '$[1]')
            then case when t.lease_until_ms > (select @now_ms) then 'held' else 'expired' end
        else 'ended'
    end
from json_each(:(ids, attempts)) a
left join cairnq_tasks t on t.id = json_extract(a.value, '$[0]')
