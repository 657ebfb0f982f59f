-- This host's clock in epoch milliseconds. Params: none. Result: one integer.
select @now_ms
