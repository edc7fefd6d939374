DELETE FROM oncebox.leaders WHERE duty = 'maintenance' AND holder = $1;
