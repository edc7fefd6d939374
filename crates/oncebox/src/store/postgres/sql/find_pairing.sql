SELECT opened_at, until, until > clock_timestamp(), paired, last
FROM oncebox.pairings
WHERE source = $1 AND until IS NOT NULL;
