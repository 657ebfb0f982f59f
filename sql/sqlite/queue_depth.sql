-- How many tasks are queued, counted no further than a bound. Params: :queue, :bound. Result: a count from 0 to :bound.
-- Locks: none.
select count(*)
from (
    select 1 from cairnq_tasks t indexed by cairnq_lean_claim_idx
    where t.status = 'queued' and t.queue = :queue
    limit :bound
) counted
