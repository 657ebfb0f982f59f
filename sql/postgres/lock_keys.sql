-- Take the locks of business keys, in hash order so that two callers cannot deadlock; held until the transaction ends.
-- Params: :keys text[]. Result: a row for each lock, with the isolation level of the transaction.
select pg_advisory_xact_lock(k.hash), current_setting('transaction_isolation')
from (
    select distinct hashtextextended(u.key, 0) as hash
    from unnest(:keys::text[]) as u (key)
    order by 1
) k
