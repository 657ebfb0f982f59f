-- About how long ago did the oldest finished task end? Params: none. Locks: none.
-- Result: one row: epoch ms of the end of the task that was submitted first, of each finished status; null: none.
-- It reads one row of the index of finished rows for each status.
select min(f.completed_at_ms), @now_ms
from unnest(array['succeeded', 'failed', 'canceled']) as s (status)
cross join lateral (
    select t.completed_at_ms from cairnq_tasks t
    where (t.status, t.id) > (s.status, '') and t.status = s.status
        and t.status in ('succeeded', 'failed', 'canceled')
    order by t.status, t.id
    limit 1
) f
