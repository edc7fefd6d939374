DELETE FROM happenings WHERE at < ?1;
