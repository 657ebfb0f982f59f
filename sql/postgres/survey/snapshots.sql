-- Who holds back vacuum: the oldest snapshots of this database, prepared transactions and replication slots.
-- Params: :least_s bigint (younger than so many seconds is not worth a word). Locks: none.
-- Result: kind, who, age in seconds (null for a slot), the oldest first. A role sees its own sessions in full, those of
--   others only as member of pg_read_all_stats.
select h.kind, h.who, h.age_s
from (
    select 'session' as kind,
        a.pid || ' (' || coalesce(nullif(a.application_name, ''), a.usename, '?') || ', ' || a.state || ')' as who,
        extract(epoch from clock_timestamp() - a.xact_start)::bigint as age_s
    from pg_catalog.pg_stat_activity a
    where a.datname = current_database() and a.pid <> pg_backend_pid() and a.xact_start is not null
        and (a.backend_xmin is not null or a.backend_xid is not null)
    union all
    select 'prepared transaction', p.gid, extract(epoch from clock_timestamp() - p.prepared)::bigint
    from pg_catalog.pg_prepared_xacts p
    where p.database = current_database()
    union all
    select 'replication slot', s.slot_name || case when s.active then '' else ' (inactive)' end, null
    from pg_catalog.pg_replication_slots s
    where s.xmin is not null or s.catalog_xmin is not null
) h
where h.age_s is null or h.age_s >= :least_s::bigint
order by h.age_s desc nulls last
limit 10
