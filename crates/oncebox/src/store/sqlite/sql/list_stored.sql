SELECT no, stored FROM sources ORDER BY no;
