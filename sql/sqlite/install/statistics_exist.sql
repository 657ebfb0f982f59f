-- Has anything in the file ever been analyzed? Params: none. Result: one boolean.
select exists (select 1 from sqlite_master m where m.type = 'table' and m.name = 'sqlite_stat1')
