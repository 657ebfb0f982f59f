-- Claim up to :limit due tasks of :names from :queues, highest priority first, then run_at, then id.
-- Params: :queues, :names JSON arrays, :worker_id, :lease_ms, :limit. Result: task columns, in no order.
-- Locks: the file's writer.
-- A look at the names that are queued decides the way, within one snapshot: a queue where all are ours is walked as
-- without a filter; where a foreign name or a suspect stands among them, each of our names is a source of its own.
with recursive
present (queue, name) as (
    select q.value, (
        select t.name from cairnq_tasks t indexed by cairnq_lean_claim_name_idx
        where t.status = 'queued' and t.queue = q.value
        order by t.name limit 1
    )
    from json_each(:queues) q
    union all
    select p.queue, (
        select t.name from cairnq_tasks t indexed by cairnq_lean_claim_name_idx
        where t.status = 'queued' and t.queue = p.queue and t.name > p.name
        order by t.name limit 1
    )
    from present p where p.name in (select n.value from json_each(:names) n)
),
mixed (queue) as materialized (
    select p.queue from present p where p.name not in (select n.value from json_each(:names) n)
    union
    select q.value from json_each(:queues) q
    where exists (
        select 1 from cairnq_tasks t indexed by cairnq_lean_suspect_idx
        where t.status = 'queued' and t.queue = q.value and @suspect
    )
),
source (queue, name) as (
    select q.value, null from json_each(:queues) q where q.value not in (select m.queue from mixed m)
    union all
    select m.queue, n.value from mixed m cross join json_each(:names) n
),
@ladder,
@picked
update cairnq_tasks as t
set status = 'running',
    attempt = t.attempt + 1,
    worker_id = :worker_id,
    lease_until_ms = @now_ms + :lease_ms,
    updated_at_ms = @now_ms
where t.id in (select p.id from picked p)
returning @returned_columns
