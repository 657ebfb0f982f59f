-- Take, or keep, a duty that one supervisor of all has at a time. Params: :duty, :holder, :lease_ms.
-- Result: one row if the duty is this holder's now, for :lease_ms.
insert into cairnq_meta as m (key, value)
values ('duty ' || :duty, ((select @now_ms) + :lease_ms) || ' ' || :holder)
on conflict (key) do update set value = excluded.value
where cast(substr(m.value, 1, instr(m.value, ' ') - 1) as integer) <= (select @now_ms)
    or substr(m.value, instr(m.value, ' ') + 1) = :holder
returning key
