SELECT max(count(*), 1) FROM unanswered WHERE key = ?1;
