SELECT oncebox.take_out_day($1, $2, $3::bigint * interval '1 millisecond');
