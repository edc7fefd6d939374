SELECT t.max_snoozes FROM oncebox.routes AS t WHERE t.no = $1;
