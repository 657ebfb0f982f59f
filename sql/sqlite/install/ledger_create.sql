-- Make the ledger that every SDK consults, unless it is there. Params: none.
create table if not exists cairnq_migrations (
    name          text primary key not null,
    applied_at_ms integer not null
)
