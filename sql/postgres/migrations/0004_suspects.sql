-- Suspects: tasks in flight at two deaths of their process, whose error says so. They run alone
-- (docs/decisions/0012-suspects-run-alone.md), so that workers' claims must get past them for nothing.
-- A release before this one finds its tasks as before: both indexes keep the order and the rows they had.

-- the claim of one suspect
create index if not exists cairnq_lean_suspect_idx
    on cairnq_tasks (queue, priority desc, run_at_ms, id)
    where status = 'queued' and error @> '{"code": "worker_crashed", "details": {"suspect": 2}}';

-- the claim of some names among others, of which it leaves out the suspects
drop index if exists cairnq_lean_claim_name_idx;
create index cairnq_lean_claim_name_idx
    on cairnq_tasks (
        queue, name, coalesce(error @> '{"code": "worker_crashed", "details": {"suspect": 2}}', false),
        priority desc, run_at_ms, id
    )
    where status = 'queued';
