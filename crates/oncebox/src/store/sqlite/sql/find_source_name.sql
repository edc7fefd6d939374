SELECT name FROM sources WHERE no = ?1;
