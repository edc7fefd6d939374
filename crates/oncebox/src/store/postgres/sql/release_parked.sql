SELECT oncebox.release_parked($1);
