-- Insert many queued tasks that differ in nothing but their ids and payloads: the form of the common call in bulk.
-- Params: arrays of one length :ids, :payloads (JSON). Of all: :name, :queue, :metadata (JSON), :max_attempts, :priority,
--   :parent_id, :root_id, :correlation_id (null: none; a null root_id is the task's own id), :delay_ms.
-- Result: created_at_ms, a row for each and the same in all; run_at_ms is that and the delay.
-- Locks: the file's writer.
insert into cairnq_tasks (
    id, name, queue, status, payload, metadata, max_attempts, priority,
    parent_id, root_id, correlation_id, run_at_ms, created_at_ms, updated_at_ms
)
select json_extract(i.value, '$[0]'), :name, :queue, 'queued', json_extract(i.value, '$[1]'), :metadata,
    :max_attempts, :priority, :parent_id, coalesce(:root_id, json_extract(i.value, '$[0]')), :correlation_id,
    @now_ms + :delay_ms, @now_ms, @now_ms
from json_each(:(ids, payloads)) i
returning created_at_ms
