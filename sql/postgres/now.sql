-- The database's clock in epoch milliseconds. Params: none. Result: one bigint.
select @now_ms
