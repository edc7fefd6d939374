-- A name that is in use leads to whoever has it.
DELETE FROM former_source_names WHERE name = ?1;
