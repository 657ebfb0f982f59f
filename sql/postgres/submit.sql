-- Insert queued tasks, one or many.
-- Params: arrays of one length :ids, :names, :queues, :payloads (JSON), :metadatas (JSON) text[],
--   :max_attempts, :priorities integer[], :parent_ids, :root_ids, :correlation_ids text[] (null: none; a null root_id
--   is the task's own id), :delays_ms bigint[]. Locks: none but its own rows.
-- Result: one row, the created_at_ms of them all; each run_at_ms is that and the delay.
with clock as materialized (
    select @now_ms as now_ms
),
inserted as (
    insert into cairnq_tasks (
        id, name, queue, status, payload, metadata, max_attempts, priority,
        parent_id, root_id, correlation_id, run_at_ms, created_at_ms, updated_at_ms
    )
    select i.id, i.name, i.queue, 'queued', i.payload::jsonb, i.metadata::jsonb, i.max_attempts, i.priority,
        i.parent_id, coalesce(i.root_id, i.id), i.correlation_id, clock.now_ms + i.delay_ms, clock.now_ms, clock.now_ms
    from clock
    cross join unnest(
        :ids::text[], :names::text[], :queues::text[], :payloads::text[], :metadatas::text[],
        :max_attempts::integer[], :priorities::integer[],
        :parent_ids::text[], :root_ids::text[], :correlation_ids::text[], :delays_ms::bigint[]
    ) as i (
        id, name, queue, payload, metadata, max_attempts, priority, parent_id, root_id, correlation_id, delay_ms
    )
)
select clock.now_ms from clock
