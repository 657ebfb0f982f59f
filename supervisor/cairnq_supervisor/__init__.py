"""The supervisor: one command that checks the database once, forks worker processes and keeps their leases alive."""
