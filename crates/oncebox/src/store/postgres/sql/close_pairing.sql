UPDATE oncebox.pairings SET opened_at = NULL, until = NULL
WHERE source = $1 AND paired IS NULL AND until > clock_timestamp();
