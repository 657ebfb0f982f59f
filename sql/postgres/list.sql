-- List tasks newest first (by id, which begins with the time of the submit). One variant for each set of filters.
-- Params: :limit, :offset bigint; filters, each optional: :queue, :name, :root_id, :correlation_id text, and ^status,
--   which is written into the statement as a literal so that the planner sees how rare it is.
-- A finished status is a range of one, so that only the index of finished rows has the order: the primary key would be
-- walked through all that was submitted since. Result: task columns. Locks: none.
select @task_columns
from cairnq_tasks t
where true
    and t.status = ^status -- if live
    and t.status >= ^status and t.status <= ^status -- if finished
    and t.status in ('succeeded', 'failed', 'canceled') -- if finished
    and t.queue = :queue::text -- if queue
    and t.name = :name::text -- if name
    and t.correlation_id = :correlation_id::text -- if correlation_id
    and t.id in ( -- if root_id
        select :root_id::text -- if root_id
        union all -- if root_id
        select c.id from cairnq_tasks c where c.root_id = :root_id::text and c.root_id <> c.id -- if root_id
    ) -- if root_id
    and t.root_id = :root_id::text -- if root_id
order by t.id desc -- unless finished
order by t.status desc, t.id desc -- if finished
limit :limit::bigint offset :offset::bigint
