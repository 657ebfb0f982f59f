-- Turn write-ahead logging on: readers and the writer no longer wait for each other. Outside a transaction.
-- Params: none. Result: the mode that the file has now.
pragma journal_mode = wal
