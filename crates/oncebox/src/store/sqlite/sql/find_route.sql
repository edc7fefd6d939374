SELECT no FROM routes WHERE name = ?1;
