SELECT count(*) FROM oncebox.effect_conflicts;
