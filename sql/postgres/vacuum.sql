-- Remove dead rows of the hot table, unless somebody does already. Params: none. Not inside a transaction.
-- Locks: SHARE UPDATE EXCLUSIVE. Without truncation, which would wait for everybody.
vacuum (skip_locked, truncate off) cairnq_tasks
