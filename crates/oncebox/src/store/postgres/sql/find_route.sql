SELECT no FROM oncebox.routes WHERE name = $1;
