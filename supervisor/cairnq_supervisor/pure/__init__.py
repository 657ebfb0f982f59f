"""Rules of the supervisor as values: no I/O, no clock reads (`now` is an argument)."""
