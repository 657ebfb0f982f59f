-- Every change of a status or of an owner, and every one after an end, in the order in which they happened to each task.
select seq, task_id, name, before, after, old_attempt, attempt, old_worker, worker, lease_until_ms, canceling,
    completed_at_ms, at_ms, key, conflict
from torture_changes
order by seq
