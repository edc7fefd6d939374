INSERT INTO arrival_deltas (minute, source, outcome, event_type, count) VALUES (?1, ?2, ?3, ?4, ?5);
