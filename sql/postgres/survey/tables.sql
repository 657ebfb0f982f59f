-- How the hot table fares. Params: :schema text. Locks: none.
-- Result: one row: live and dead rows (estimates), seconds since its last vacuum (null: never), whether autovacuum may run
--   on it, whether the wake-up trigger stands and fires. No row: there is no such table.
select s.n_live_tup, s.n_dead_tup,
    extract(epoch from clock_timestamp() - greatest(s.last_vacuum, s.last_autovacuum))::bigint,
    current_setting('autovacuum')::boolean and not coalesce('autovacuum_enabled=false' = any (c.reloptions), false),
    exists (
        select from pg_catalog.pg_trigger t
        where t.tgrelid = c.oid and t.tgname = 'cairnq_tasks_notify' and t.tgenabled in ('O', 'A')
    )
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join pg_catalog.pg_stat_all_tables s on s.relid = c.oid
where n.nspname = :schema::text and c.relname = 'cairnq_tasks'
