-- The tables of protocol 1, made only where no cairnq stands yet.

create table cairnq_tasks (
    id                     text primary key not null,
    name                   text not null,
    queue                  text not null default 'default',
    status                 text not null check (status in ('queued', 'running', 'succeeded', 'failed', 'canceled')),
    payload                text not null check (json_valid(payload)),
    result                 text check (result is null or json_valid(result)),
    error                  text check (error is null or json_valid(error)),
    metadata               text not null default '{}' check (json_valid(metadata)),
    progress               real,
    message                text,
    attempt                integer not null default 0,
    max_attempts           integer not null default 3,
    priority               integer not null default 0,
    worker_id              text,
    lease_until_ms         integer,
    run_at_ms              integer not null,
    cancel_requested_at_ms integer,
    parent_id              text,
    root_id                text,
    correlation_id         text,
    created_at_ms          integer not null,
    updated_at_ms          integer not null,
    completed_at_ms        integer
);

create table cairnq_task_keys (
    key           text primary key not null,
    task_id       text not null references cairnq_tasks (id) on delete cascade,
    created_at_ms integer not null,
    updated_at_ms integer not null
);

create table cairnq_meta (
    key   text primary key not null,
    value text not null
);

insert into cairnq_meta (key, value) values ('protocol_version', '1'), ('schema_version', '10');
