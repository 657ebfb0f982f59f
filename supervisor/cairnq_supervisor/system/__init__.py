"""The only place that forks, signals, waits for processes, and opens sockets and shared memory."""
