-- Is there a ledger of migrations in the schema? Params: :schema text. Result: one boolean.
select exists (
    select from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where n.nspname = :schema::text and c.relname = 'cairnq_migrations'
)
