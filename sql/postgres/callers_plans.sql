-- Give the planner its freedom back until this transaction ends: the caller's own statements follow (see connection.sql).
-- Params: none. Result: one row of no meaning.
select set_config('plan_cache_mode', 'auto', true),
    set_config('jit', 'on', true),
    set_config('enable_seqscan', 'on', true),
    set_config('enable_bitmapscan', 'on', true),
    set_config('enable_hashjoin', 'on', true),
    set_config('enable_mergejoin', 'on', true),
    set_config('enable_sort', 'on', true)
