DELETE FROM oncebox.unanswered WHERE key = $1;
