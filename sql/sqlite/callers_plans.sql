-- Give the planner its freedom back for the caller's statements: it was never taken, our statements name their indexes.
-- Params: none. Result: one row of no meaning.
select null
