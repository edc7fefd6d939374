-- Never back.
INSERT INTO lanes (route, source, object, applied, touched)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (route, source, object) DO UPDATE SET
    applied = max(coalesce(applied, excluded.applied), excluded.applied),
    touched = excluded.touched;
