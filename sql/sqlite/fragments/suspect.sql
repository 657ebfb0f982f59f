case when json_valid(t.error)
    then json_extract(t.error, '$.code', '$.details.suspect') = '["worker_crashed",2]'
    else 0
end
