-- Only where the new name is not taken: otherwise the new name already has a history of its own.
UPDATE oncebox.routes SET name = $1
WHERE name = $2 AND NOT EXISTS (SELECT 1 FROM oncebox.routes WHERE name = $1);
