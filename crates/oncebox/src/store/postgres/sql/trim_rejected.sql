-- Leaves the newest of a source and reason. What another node removes just now is passed over, so
-- that two of them never wait for each other.
DELETE FROM oncebox.rejected
WHERE id IN (
    SELECT id FROM oncebox.rejected
    WHERE id IN (
        SELECT id FROM oncebox.rejected
        WHERE source = $1 AND reason = $2
        ORDER BY id DESC
        OFFSET $3
    )
    FOR UPDATE SKIP LOCKED
);
