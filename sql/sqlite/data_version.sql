-- A counter that moves when any other connection has committed. Params: none. Result: one integer. Locks: none.
pragma data_version
