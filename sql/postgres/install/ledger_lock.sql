-- Exclude every other SDK's migrations until this transaction ends. Params: none.
lock table cairnq_migrations in exclusive mode
