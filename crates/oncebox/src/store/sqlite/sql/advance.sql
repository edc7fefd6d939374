-- Never back, unless it replaces a watermark of another unit (?6); an equal version passes.
INSERT INTO lanes (route, source, object, applied, touched)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (route, source, object) DO UPDATE SET
    applied = excluded.applied,
    touched = excluded.touched
WHERE applied IS NULL OR applied <= excluded.applied OR ?6;
