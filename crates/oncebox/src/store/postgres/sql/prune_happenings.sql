-- By the writer's clock, as they are dated. Another node may do the same just now.
DELETE FROM oncebox.happenings
WHERE no IN (SELECT no FROM oncebox.happenings WHERE at < $1 FOR UPDATE SKIP LOCKED);
