-- How many tasks are queued, counted no further than a bound.
-- Params: :queue text, :bound bigint. Result: a count from 0 to :bound. Locks: none.
select count(*)
from (
    select from cairnq_tasks t
    where t.status = 'queued' and t.queue = :queue::text
    limit :bound::bigint
) counted
