-- What every connection is set to. Params: none. Several pragmas, one after the other; the variant `reads` cannot write,
-- the other waits for no lock once it is set up, for the writer waits by itself.
-- synchronous = full: a commit is on the disk before it is acknowledged. journal_size_limit: bytes to which the
-- write-ahead log is cut after a checkpoint, where a long reader let it grow. analysis_limit bounds what `analyze` reads.
pragma synchronous = full;
pragma foreign_keys = on;
pragma temp_store = memory;
pragma cache_size = -16384;
pragma journal_size_limit = 67108864;
pragma analysis_limit = 1000;
pragma query_only = on; -- if reads
pragma busy_timeout = 0; -- unless reads
