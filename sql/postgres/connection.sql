-- Prepare a connection of ours for its session's life (never behind a transaction pooler, where plans are custom).
-- Params: none. Result: one row of no meaning. It runs our statements and each of them walks an index by design, so it
-- is planned once (generic plans) and statistics, missing after a restore or stale after a burst, get no say
-- (docs/decisions/0004-plans-by-settings.md). The last four are what the statements are written for, whatever the
-- database or the role says.
select set_config('plan_cache_mode', 'force_generic_plan', false),
    set_config('jit', 'off', false),
    set_config('enable_seqscan', 'off', false),
    set_config('enable_bitmapscan', 'off', false),
    set_config('enable_hashjoin', 'off', false),
    set_config('enable_mergejoin', 'off', false),
    set_config('enable_sort', 'off', false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('client_encoding', 'UTF8', false),
    set_config('extra_float_digits', '1', false),
    set_config('array_nulls', 'on', false)
