-- Copy the write-ahead log into the file and let the next write begin it anew, once every reader has left it.
-- Params: none. Result: was it busy (some reader did not leave in time), frames in the log, frames copied.
-- Locks: the file's writer, for as long as `patience` says at most.
pragma wal_checkpoint(restart)
