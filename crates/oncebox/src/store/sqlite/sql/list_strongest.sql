SELECT no FROM sources WHERE proved_strongest = 1 ORDER BY no;
