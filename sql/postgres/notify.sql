-- Send an empty notification: the far half of a listener's self-test. Params: :channel text. Result: one row of no meaning.
select pg_notify(:channel::text, '')
