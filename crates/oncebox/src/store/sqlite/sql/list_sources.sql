SELECT no, name FROM sources ORDER BY no;
