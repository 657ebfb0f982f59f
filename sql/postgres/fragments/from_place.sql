select :from_priority::integer, :from_run_at_ms::bigint, :from_id::text
where not exists (
    select from cairnq_tasks t where t.status = 'queued' and t.queue = q.queue and t.priority > :from_priority::integer
)
