-- Does the schema exist? Params: :schema text. Result: one boolean.
select exists (select from pg_catalog.pg_namespace n where n.nspname = :schema::text)
