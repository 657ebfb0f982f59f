-- The indexes that our statements walk. All but the primary key are partial, and none holds a column that a
-- beat or a progress report writes, so that those stay HOT (docs/decisions/0002-lean-storage.md).
-- Beside another SDK's indexes these are added and nothing is taken away.

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

-- Tables this hot are vacuumed by churn and not by share of their size.
alter table cairnq_tasks set (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 0
);
