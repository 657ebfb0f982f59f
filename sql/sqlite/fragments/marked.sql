case when json_valid(t.error)
    then 1 + (json_extract(t.error, '$.code', '$.details.suspect') in ('["worker_crashed",1]', '["worker_crashed",2]'))
    else 1
end
