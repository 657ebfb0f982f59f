-- Refresh the planner's statistics where they have aged. Params: none. Result: none. Locks: the file's writer, perhaps.
pragma optimize
