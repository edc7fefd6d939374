SELECT no FROM sources WHERE name = ?1;
