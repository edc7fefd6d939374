-- Its conflicts go with it.
DELETE FROM oncebox.effects WHERE key = $1;
