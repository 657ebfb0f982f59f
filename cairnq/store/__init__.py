"""What is true of the database: the store's contract, its PostgreSQL form, schema checks, retention, backpressure."""
