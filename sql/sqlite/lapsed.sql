-- Has any lease run out? A read-only look before `recover` asks for the file's write lock.
-- Params: none. Result: one boolean. Locks: none.
select exists (
    select 1 from cairnq_tasks t indexed by cairnq_lean_running_idx
    where t.status = 'running' and t.lease_until_ms <= (select @now_ms)
)
