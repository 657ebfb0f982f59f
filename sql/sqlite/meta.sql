-- Read one value of the installation. Params: :key. Result: value. Locks: none.
select m.value from cairnq_meta m where m.key = :key
