-- Note migrations as applied. Params: :names JSON array. Result: none.
insert into cairnq_migrations (name, applied_at_ms)
select n.value, @now_ms from json_each(:names) n
where true
on conflict (name) do nothing
