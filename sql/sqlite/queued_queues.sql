-- Which queues hold queued tasks, due or not: read after the file has changed, to tell who may have work.
-- Params: none. Result: queue. Locks: none. Steps from queue to queue along the claim's index.
with recursive stepped (queue) as (
    select (
        select t.queue from cairnq_tasks t indexed by cairnq_lean_claim_idx
        where t.status = 'queued' order by t.queue limit 1
    )
    union all
    select (
        select t.queue from cairnq_tasks t indexed by cairnq_lean_claim_idx
        where t.status = 'queued' and t.queue > s.queue order by t.queue limit 1
    )
    from stepped s where s.queue is not null
)
select s.queue from stepped s where s.queue is not null
