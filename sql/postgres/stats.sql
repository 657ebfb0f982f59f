-- Count tasks by queue and status. Params: :queue text, optional. Result: queue, status, count. Locks: none.
-- Reads every row (of the queue): an overview for people, not for a loop.
select t.queue, t.status, count(*)
from cairnq_tasks t
where true
    and t.queue = :queue::text -- if queue
group by t.queue, t.status
