-- Take, or keep, a duty that one host of all has at a time. Params: :duty, :holder text, :lease_ms bigint.
-- Result: one row if the duty is this holder's now, for :lease_ms. Locks: the duty's row in cairnq_meta.
insert into cairnq_meta as m (key, value)
values ('duty ' || :duty::text, ((select @now_ms) + :lease_ms::bigint) || ' ' || :holder::text)
on conflict (key) do update set value = excluded.value
where split_part(m.value, ' ', 1)::bigint <= (select @now_ms) or split_part(m.value, ' ', 2) = :holder::text
returning m.key
