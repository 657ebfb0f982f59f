-- Prepare a connection of ours for its session's life (never behind a transaction pooler, where plans are custom).
-- Params: none. Result: rows of no meaning. It runs our statements and each of them walks an index by design, so it
-- is planned once (generic plans) and statistics, missing after a restore or stale after a burst, get no say
-- (docs/decisions/0004-plans-by-settings.md). The rest is what the statements are written for, whatever the database
-- or the role says, where this server knows it; a time-out that the URL itself asks for stays.
select set_config(ours.name, ours.setting, false)
from (values
    ('plan_cache_mode', 'force_generic_plan'),
    ('jit', 'off'),
    ('enable_seqscan', 'off'),
    ('enable_bitmapscan', 'off'),
    ('enable_hashjoin', 'off'),
    ('enable_mergejoin', 'off'),
    ('enable_sort', 'off'),
    ('enable_indexscan', 'on'),
    ('enable_indexonlyscan', 'on'),
    ('enable_tidscan', 'on'),
    ('enable_nestloop', 'on'),
    ('enable_material', 'on'),
    ('enable_memoize', 'on'),
    ('enable_hashagg', 'on'),
    ('enable_incremental_sort', 'on'),
    ('default_transaction_isolation', 'read committed'),
    ('client_encoding', 'UTF8'),
    ('extra_float_digits', '1'),
    ('array_nulls', 'on'),
    ('statement_timeout', '0'),
    ('lock_timeout', '0'),
    ('transaction_timeout', '0'),
    ('idle_session_timeout', '0')
) as ours (name, setting)
join pg_settings as known on known.name = ours.name
where known.source <> 'client' or ours.name not like '%timeout'
