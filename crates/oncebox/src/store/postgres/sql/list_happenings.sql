SELECT no, at, line FROM oncebox.happenings ORDER BY at, no;
