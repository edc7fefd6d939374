SELECT id FROM unnest($1::uuid[]) AS wanted (id)
WHERE NOT EXISTS (
    SELECT FROM oncebox.receipts WHERE receipts.id = wanted.id AND receipts.id = ANY ($1)
);
