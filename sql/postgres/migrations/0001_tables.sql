-- The tables of protocol 1, made only where no cairnq stands yet.
--
-- fillfactor 40: a beat rewrites every running row of a page at once, and stays HOT only while the page has
-- room for all of them, which a claim has made longer by a worker's id (docs/decisions/0002-lean-storage.md).

create table cairnq_tasks (
    id                     text primary key,
    name                   text not null,
    queue                  text not null default 'default',
    status                 text not null constraint cairnq_tasks_status_check
                           check (status in ('queued', 'running', 'succeeded', 'failed', 'canceled')),
    payload                jsonb not null,
    result                 jsonb,
    error                  jsonb,
    metadata               jsonb not null default '{}'::jsonb,
    progress               double precision,
    message                text,
    attempt                integer not null default 0,
    max_attempts           integer not null default 3,
    priority               integer not null default 0,
    worker_id              text,
    lease_until_ms         bigint,
    run_at_ms              bigint not null,
    cancel_requested_at_ms bigint,
    parent_id              text,
    root_id                text,
    correlation_id         text,
    created_at_ms          bigint not null,
    updated_at_ms          bigint not null,
    completed_at_ms        bigint
) with (fillfactor = 40);

create table cairnq_task_keys (
    key           text primary key,
    task_id       text not null references cairnq_tasks (id) on delete cascade,
    created_at_ms bigint not null,
    updated_at_ms bigint not null
);

create table cairnq_meta (
    key   text primary key,
    value text not null
);

insert into cairnq_meta (key, value) values ('protocol_version', '1'), ('schema_version', '10');
