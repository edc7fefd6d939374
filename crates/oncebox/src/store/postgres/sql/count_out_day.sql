SELECT removed, is_over FROM oncebox.count_out_day($1, $2);
