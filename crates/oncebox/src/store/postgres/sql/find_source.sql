SELECT no FROM oncebox.sources WHERE name = $1;
