-- Insert one queued task: the form of the common call, without arrays.
-- Params: :id, :name, :queue, :payload, :metadata (JSON), :max_attempts, :priority, :parent_id, :root_id, :correlation_id
--   (null: none; a null root_id is the task's own id), :delay_ms. Result: created_at_ms;
--   run_at_ms is that and the delay. Locks: the file's writer.
insert into cairnq_tasks (
    id, name, queue, status, payload, metadata, max_attempts, priority,
    parent_id, root_id, correlation_id, run_at_ms, created_at_ms, updated_at_ms
)
values (
    :id, :name, :queue, 'queued', :payload, :metadata, :max_attempts, :priority,
    :parent_id, coalesce(:root_id, :id), :correlation_id, @now_ms + :delay_ms, @now_ms, @now_ms
)
returning created_at_ms
