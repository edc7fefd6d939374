-- Two routes that had the same name one after the other must not share keys.
INSERT INTO oncebox.routes (no, name, born_as)
SELECT
    coalesce(max(no), 0) + 1,
    $1,
    CASE WHEN bool_or(born_as = $1) THEN $1 || '#' || (max(no) + 1) ELSE $1 END
FROM oncebox.routes
ON CONFLICT (name) DO NOTHING;
