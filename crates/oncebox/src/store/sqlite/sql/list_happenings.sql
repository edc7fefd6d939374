SELECT no, at, line FROM happenings ORDER BY at, no;
