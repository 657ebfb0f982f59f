-- Take the locks of business keys: none is needed, for the transaction holds the file's write lock already.
-- Params: none. Result: one row, with the isolation level, for a re-read sees what the lock's last holder committed.
select null, 'read committed'
