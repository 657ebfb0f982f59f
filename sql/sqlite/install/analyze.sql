-- Gather the planner's statistics of the tasks. Params: none. Locks: the file's writer.
analyze cairnq_tasks
