-- Wake-ups: cairnq_queued carries a queue's name, cairnq_done a task's id. Hints only; every loop keeps its poll.
--
-- NOTIFY takes a lock of the whole database at commit, so the queued one is gated: while one transaction of the
-- last 50 ms holds the queue's advisory lock, others stay silent. The bucket of time in the lock's key keeps a long
-- transaction from silencing its queue for its whole life (docs/decisions/0003-gated-notify.md).
-- The trigger carries the name that other SDKs give theirs: where one stands, it stays, and no second is added.

create or replace function cairnq_lean_notify() returns trigger language plpgsql as $$
begin
    if new.status = 'queued' then
        if pg_try_advisory_xact_lock(
            hashtext(new.queue),
            ((extract(epoch from clock_timestamp()) * 20)::bigint % 2147483647)::integer
        ) then
            perform pg_notify('cairnq_queued', new.queue);
        end if;
    else
        perform pg_notify('cairnq_done', new.id);
    end if;
    return null;
end
$$;

do $$
begin
    if not exists (
        select from pg_trigger
        where tgname = 'cairnq_tasks_notify' and tgrelid = 'cairnq_tasks'::regclass
    ) then
        create trigger cairnq_tasks_notify
            after insert or update of status on cairnq_tasks
            for each row when (new.status <> 'running')
            execute function cairnq_lean_notify();
    end if;
end
$$;
