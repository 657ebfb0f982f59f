-- Insert one queued task: the form of the common call, without arrays.
-- Params: :id, :name, :queue text, :payload, :metadata text (JSON), :max_attempts, :priority integer,
--   :parent_id, :root_id, :correlation_id text (null: none; a null root_id is the task's own id), :delay_ms bigint.
-- Result: created_at_ms; run_at_ms is that and the delay. Locks: none but its own row.
insert into cairnq_tasks as t (
    id, name, queue, status, payload, metadata, max_attempts, priority,
    parent_id, root_id, correlation_id, run_at_ms, created_at_ms, updated_at_ms
)
select :id::text, :name::text, :queue::text, 'queued', :payload::text::jsonb, :metadata::text::jsonb,
    :max_attempts::integer, :priority::integer,
    :parent_id::text, coalesce(:root_id::text, :id::text), :correlation_id::text,
    clock.now_ms + :delay_ms::bigint, clock.now_ms, clock.now_ms
from (select @now_ms as now_ms) clock
returning t.created_at_ms
