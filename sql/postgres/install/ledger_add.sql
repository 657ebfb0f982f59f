-- Note migrations as applied. Params: :names text[]. Result: none.
insert into cairnq_migrations (name, applied_at_ms)
select n.name, @now_ms from unnest(:names::text[]) as n (name)
on conflict (name) do nothing
