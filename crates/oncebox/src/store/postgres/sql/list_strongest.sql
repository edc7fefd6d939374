SELECT no FROM oncebox.sources WHERE proved_strongest ORDER BY no;
