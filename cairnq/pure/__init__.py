"""Values and rules: no I/O, no clock reads (`now` is an argument), no imports from the layers above."""
