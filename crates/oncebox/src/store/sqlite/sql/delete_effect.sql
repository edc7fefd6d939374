-- Its conflicts go with it.
DELETE FROM effects WHERE key = ?1;
