-- A name that is in use leads to whoever has it.
DELETE FROM former_route_names WHERE name = ?1;
