INSERT INTO happenings (at, line) VALUES (?1, ?2);
