-- Two sources that had the same name one after the other must not share keys.
INSERT INTO sources (name, born_as)
VALUES (
    ?1,
    CASE
        WHEN EXISTS (SELECT 1 FROM sources WHERE born_as = ?1)
            THEN ?1 || '#' || (SELECT max(no) + 1 FROM sources)
        ELSE ?1
    END
)
ON CONFLICT (name) DO NOTHING;
