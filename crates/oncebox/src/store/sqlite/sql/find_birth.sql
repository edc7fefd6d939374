SELECT born_as FROM routes WHERE no = ?1;
