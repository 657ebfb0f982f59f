-- How many tasks are queued, counted no further than a bound.
-- Params: :queue text, :bound bigint. Result: a count from 0 to :bound. Locks: none.
-- The order is that of the index, so that no plan reads more of it than the bound.
select count(*)
from (
    select from cairnq_tasks t
    where t.status = 'queued' and t.queue = :queue::text
    order by t.priority desc, t.run_at_ms, t.id
    limit :bound::bigint
) counted
