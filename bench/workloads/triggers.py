"""Other ways to wake workers by a trigger, to measure ours beside."""

from __future__ import annotations

NONE, OURS, UNGATED = "none", "ours", "ungated"
LOCK, STATEMENT, WHEN = "lock alone", "lock alone, by statement", "lock alone, in when"
"""`lock alone`: one transaction at a time notifies of a queue, and no session remembers that it did."""

_UNGATED = """
create function ungated() returns trigger language plpgsql as $$
begin perform pg_notify('cairnq_queued', new.queue); return null; end $$;
create trigger other_notify after insert or update of status on cairnq_tasks
    for each row when (new.status <> 'running') execute function ungated();
"""
_LOCK = """
create function locked() returns trigger language plpgsql as $$
begin
    if new.status = 'queued' then
        if pg_try_advisory_xact_lock(
            hashtext(new.queue), ((extract(epoch from clock_timestamp()) * 20)::bigint % 2147483647)::integer
        ) then
            perform pg_notify('cairnq_queued', new.queue);
        end if;
    else
        perform pg_notify('cairnq_done', new.id);
    end if;
    return null;
end $$;
create trigger other_notify after insert or update of status on cairnq_tasks
    for each row when (new.status <> 'running') execute function locked();
"""
_BY_STATEMENT = """
create function by_statement() returns trigger language plpgsql as $$
declare queue text;
begin
    for queue in select distinct n.queue from inserted n where n.status = 'queued' loop
        if pg_try_advisory_xact_lock(
            hashtext(queue), ((extract(epoch from clock_timestamp()) * 20)::bigint % 2147483647)::integer
        ) then
            perform pg_notify('cairnq_queued', queue);
        end if;
    end loop;
    return null;
end $$;
create trigger other_notify after insert on cairnq_tasks
    referencing new table as inserted for each statement execute function by_statement();
"""
_WHEN = """
create function when_gated() returns trigger language plpgsql as $$
begin
    if new.status = 'queued' then
        perform pg_notify('cairnq_queued', new.queue);
    else
        perform pg_notify('cairnq_done', new.id);
    end if;
    return null;
end $$;
create trigger other_notify after insert or update of status on cairnq_tasks for each row
    when (new.status <> 'running' and (new.status <> 'queued' or pg_try_advisory_xact_lock(
        hashtext(new.queue), ((extract(epoch from clock_timestamp()) * 20)::bigint % 2147483647)::integer)))
    execute function when_gated();
"""
OTHER = {UNGATED: _UNGATED, LOCK: _LOCK, STATEMENT: _BY_STATEMENT, WHEN: _WHEN}
"""Each is added in the place of ours, which is disabled."""
