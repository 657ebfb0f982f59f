-- Make the schema (written in as a quoted identifier). Params: none.
create schema if not exists ^schema
