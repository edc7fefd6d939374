-- What a node told counts for a day after it. What was told last counts until something else is.
DELETE FROM oncebox.source_windows AS w
WHERE EXISTS (
    SELECT 1
    FROM oncebox.source_windows AS n
    WHERE n.source = w.source AND n.told_at > w.told_at + interval '1 day'
);
