-- Is there a ledger of migrations in the file? Params: none. Result: one boolean.
select exists (select 1 from sqlite_master m where m.type = 'table' and m.name = 'cairnq_migrations')
