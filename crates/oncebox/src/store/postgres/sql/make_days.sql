SELECT oncebox.make_days(d.day, d.day)
FROM (SELECT DISTINCT day FROM unnest($1::integer[]) AS d (day) ORDER BY day) AS d;
