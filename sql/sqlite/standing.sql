-- Where attempts stand, asked after a write of them matched no row or had no reply.
-- Params: arrays of one length :ids, :worker_ids, :attempts.
-- Result: id, worker_id, attempt, standing; a row for each one asked. Of one that ended as this attempt the standing is
-- the task's status; `gone` is a row that is not there, `ended` one that is another attempt's or nobody's. Locks: none.
select json_extract(a.value, '$[0]'), json_extract(a.value, '$[1]'), json_extract(a.value, '$[2]'),
    case
        when t.id is null then 'gone'
        when t.status = 'queued' or t.worker_id is not json_extract(a.value, '$[1]')
            or t.attempt <> json_extract(a.value, '$[2]') then 'ended'
        when t.status <> 'running' then t.status
        when t.lease_until_ms > (select @now_ms) then 'held'
        else 'expired'
    end
from json_each(:(ids, worker_ids, attempts)) a
left join cairnq_tasks t on t.id = json_extract(a.value, '$[0]')
