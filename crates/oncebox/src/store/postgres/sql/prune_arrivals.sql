DELETE FROM oncebox.arrival_rollups
WHERE span = 1 AND start < $1 OR span = 60 AND start < $2;
