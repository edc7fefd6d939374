SELECT name FROM oncebox.sources WHERE no = $1;
