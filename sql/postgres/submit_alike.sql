-- Insert many queued tasks that differ in nothing but their ids and payloads: the form of the common call in bulk.
-- Params: arrays of one length :ids, :payloads (JSON) text[]. Of all: :name, :queue text, :metadata text (JSON),
--   :max_attempts, :priority integer, :parent_id, :root_id, :correlation_id text (null: none; a null root_id is the
--   task's own id), :delay_ms bigint. Locks: none but its own rows.
-- Result: one row, the created_at_ms of them all; run_at_ms is that and the delay.
with shared as materialized (
    select @now_ms as now_ms, :metadata::text::jsonb as metadata
),
inserted as (
    insert into cairnq_tasks (
        id, name, queue, status, payload, metadata, max_attempts, priority,
        parent_id, root_id, correlation_id, run_at_ms, created_at_ms, updated_at_ms
    )
    select i.id, :name::text, :queue::text, 'queued', i.payload::jsonb, s.metadata,
        :max_attempts::integer, :priority::integer,
        :parent_id::text, coalesce(:root_id::text, i.id), :correlation_id::text,
        s.now_ms + :delay_ms::bigint, s.now_ms, s.now_ms
    from shared s
    cross join unnest(:ids::text[], :payloads::text[]) as i (id, payload)
)
select s.now_ms from shared s
