-- Wake-ups: cairnq_queued carries a queue's name, cairnq_done a task's id. Hints only; every loop keeps its poll.
--
-- NOTIFY takes a lock of the whole database at commit, so the queued one is gated twice: a session is silent for the
-- rest of the 4 ms in which it notified of the queue (a rollback takes that back), and while one transaction of the last
-- 50 ms holds the queue's advisory lock, others stay silent. The moments in both keep a long transaction from silencing
-- its queue for its whole life (docs/decisions/0003-gated-notify.md).
-- The trigger carries the name that other SDKs give theirs: where one stands, it stays, and no second is added.

create or replace function cairnq_lean_notify() returns trigger language plpgsql as $$
declare
    moment text;
begin
    if new.status = 'queued' then
        moment := (extract(epoch from clock_timestamp()) * 250)::bigint || ' ' || new.queue;
        if current_setting('cairnq.notified', true) is distinct from moment
            and pg_try_advisory_xact_lock(
                hashtext(new.queue),
                ((extract(epoch from clock_timestamp()) * 20)::bigint % 2147483647)::integer
            )
        then
            perform set_config('cairnq.notified', moment, false);
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
