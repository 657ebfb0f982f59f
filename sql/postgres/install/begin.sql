-- Open a migration: the schema pinned, a bound on waiting for locks, and one migration at a time among ours.
-- Params: :search_path text (a quoted identifier), :lock_timeout text. Result: one row of no meaning.
select set_config('search_path', :search_path::text, true),
    set_config('lock_timeout', :lock_timeout::text, true),
    pg_advisory_xact_lock(hashtextextended('cairnq migrations', 0))
