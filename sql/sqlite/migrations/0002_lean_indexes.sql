-- The indexes that our statements walk. All but the primary key are partial, and none holds a column that a
-- beat or a progress report writes. Beside another SDK's indexes these are added and nothing is taken away.
-- Statements that must not depend on the planner's statistics name theirs (`indexed by`).

-- the claim, in its order; the ladder of priorities; the depth of a queue
create index if not exists cairnq_lean_claim_idx
    on cairnq_tasks (queue, priority desc, run_at_ms, id) where status = 'queued';

-- the claim of some names among others
create index if not exists cairnq_lean_claim_name_idx
    on cairnq_tasks (queue, name, priority desc, run_at_ms, id) where status = 'queued';

-- what a worker holds: crash settlement, and recovery by walking all that runs
create index if not exists cairnq_lean_running_idx
    on cairnq_tasks (worker_id) where status = 'running';

-- purge and the lists of finished rows
create index if not exists cairnq_lean_finished_idx
    on cairnq_tasks (status, id) where status in ('succeeded', 'failed', 'canceled');

-- a task's descendants; the root itself, whose root_id is its own id, comes by primary key
create index if not exists cairnq_lean_root_idx
    on cairnq_tasks (root_id, id) where root_id <> id;

create index if not exists cairnq_lean_correlation_idx
    on cairnq_tasks (correlation_id, id) where correlation_id is not null;

-- without it each purged row scans the keys for its cascade
create index if not exists cairnq_lean_keys_task_idx
    on cairnq_task_keys (task_id);
