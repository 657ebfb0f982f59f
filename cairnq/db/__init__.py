"""SQL bindings: statements as data, drivers behind one small session interface. Knows nothing of tasks."""
