SELECT no, stored FROM oncebox.sources ORDER BY no;
