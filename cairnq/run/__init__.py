"""What runs a task: registered handlers, claims, calls, settlements, leases. No signals, no processes, no SQL."""
