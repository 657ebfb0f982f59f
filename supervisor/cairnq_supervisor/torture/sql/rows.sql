-- Every task at the end.
select id, name, status, attempt, max_attempts, worker_id, lease_until_ms, completed_at_ms, progress, parent_id,
    result, error, metadata
from cairnq_tasks
