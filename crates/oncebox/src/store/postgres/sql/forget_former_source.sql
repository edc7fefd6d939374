-- A name that is in use leads to whoever has it.
DELETE FROM oncebox.former_source_names WHERE name = $1;
