-- Give the planner its freedom back until this transaction ends (see connection.sql): the caller's own statements
-- follow, or (variant `values`) one of ours whose best plan depends on its values. Params: none. Result: one row of no meaning.
select
    set_config('plan_cache_mode', 'auto', true), -- unless values
    set_config('plan_cache_mode', 'force_custom_plan', true), -- if values
    set_config('jit', 'on', true),
    set_config('enable_seqscan', 'on', true),
    set_config('enable_bitmapscan', 'on', true),
    set_config('enable_hashjoin', 'on', true),
    set_config('enable_mergejoin', 'on', true),
    set_config('enable_sort', 'on', true)
