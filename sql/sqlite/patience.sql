-- How long this connection waits for locks. Params: ^patience_ms. Result: the same number.
pragma busy_timeout = ^patience_ms
