DELETE FROM unanswered WHERE key = ?1;
