-- List tasks newest first (by id, which begins with the time of the submit). One variant for each set of filters.
-- Params: :limit, :offset; filters, each optional: :queue, :name, :root_id, :correlation_id, and ^status, a literal, so
-- that it matches the condition of a partial index (as does its repetition where it is a finished one).
-- Result: task columns. Locks: none.
select @task_columns
from cairnq_tasks t
where true
    and t.status = ^status -- if status
    and t.status in ('succeeded', 'failed', 'canceled') -- if finished
    and t.queue = :queue -- if queue
    and t.name = :name -- if name
    and t.correlation_id = :correlation_id -- if correlation_id
    and t.id in ( -- if root_id
        select :root_id -- if root_id
        union all -- if root_id
        select c.id from cairnq_tasks c where c.root_id = :root_id and c.root_id <> c.id -- if root_id
    ) -- if root_id
    and +t.root_id = :root_id -- if root_id
order by t.id desc
limit :limit offset :offset
