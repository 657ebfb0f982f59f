-- What a run notes beside cairnq's own tables, in the file of the run.

create table torture_changes (
    seq             integer primary key autoincrement,
    task_id         text not null,
    name            text not null,
    before          text,
    after           text,
    old_attempt     integer,
    attempt         integer,
    old_worker      text,
    worker          text,
    lease_until_ms  integer,
    canceling       integer not null,
    completed_at_ms integer,
    at_ms           integer not null,
    key             text,
    conflict        text
);

create table torture_runs (
    run_id    text not null,
    task_id   text not null,
    attempt   integer not null,
    worker_id text not null,
    pid       integer not null,
    began     real not null,
    trusted   real,
    ended     real,
    raised    real
);

create table torture_notes (
    deed    text not null,
    task_id text not null,
    name    text not null
);

create table torture_effects (
    task_id text not null,
    run_id  text not null
);

create trigger torture_born after insert on cairnq_tasks
begin
    insert into torture_changes (
        task_id, name, after, attempt, worker, lease_until_ms, canceling, completed_at_ms, at_ms, key, conflict
    )
    values (
        new.id, new.name, new.status, new.attempt, new.worker_id, new.lease_until_ms, 0, new.completed_at_ms,
        cast((julianday('now') - 2440587.5) * 86400000 as integer),
        json_extract(new.metadata, '$.key'), json_extract(new.metadata, '$.conflict')
    );
end;

create trigger torture_changed after update on cairnq_tasks
when (old.status, old.attempt, old.worker_id) is not (new.status, new.attempt, new.worker_id)
    or old.status not in ('queued', 'running')
begin
    insert into torture_changes (
        task_id, name, before, after, old_attempt, attempt, old_worker, worker, lease_until_ms, canceling,
        completed_at_ms, at_ms
    )
    values (
        new.id, new.name, old.status, new.status, old.attempt, new.attempt, old.worker_id, new.worker_id,
        new.lease_until_ms, old.cancel_requested_at_ms is not null, new.completed_at_ms,
        cast((julianday('now') - 2440587.5) * 86400000 as integer)
    );
end;

create trigger torture_removed after delete on cairnq_tasks
begin
    insert into torture_changes (task_id, name, before, old_attempt, old_worker, canceling, at_ms)
    values (
        old.id, old.name, old.status, old.attempt, old.worker_id, old.cancel_requested_at_ms is not null,
        cast((julianday('now') - 2440587.5) * 86400000 as integer)
    );
end;
