"""A shop that takes orders, and sends a receipt for each one that was really placed."""
