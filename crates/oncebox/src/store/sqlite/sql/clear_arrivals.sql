DELETE FROM arrival_deltas;
