-- Have the tasks been analyzed? Only where statistics exist. Params: none. Result: one boolean.
select exists (select 1 from sqlite_stat1 s where s.tbl = 'cairnq_tasks' and s.idx is not null)
