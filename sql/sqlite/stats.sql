-- Count tasks by queue and status. Params: :queue, optional. Result: queue, status, count. Locks: none.
-- Reads every row (of the queue): an overview for people, not for a loop.
select t.queue, t.status, count(*)
from cairnq_tasks t
where true
    and t.queue = :queue -- if queue
group by t.queue, t.status
