SELECT no, name FROM oncebox.sources ORDER BY no;
