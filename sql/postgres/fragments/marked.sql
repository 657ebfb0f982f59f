case
    when t.error ->> 'code' = 'worker_crashed' and t.error #> '{details, suspect}' in ('1'::jsonb, '2'::jsonb) then '2'::jsonb
    else '1'::jsonb
end
