-- Read the ledger. Params: none. Result: name, in order.
select m.name from cairnq_migrations m order by m.name
