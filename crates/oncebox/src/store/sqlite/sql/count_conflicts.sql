SELECT count(*) FROM effect_conflicts;
