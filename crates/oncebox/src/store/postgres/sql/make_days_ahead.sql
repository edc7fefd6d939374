SELECT oncebox.make_days(oncebox.today() - 1, oncebox.today() + $1)
WHERE NOT EXISTS (SELECT 1 FROM oncebox.days AS d WHERE d.day = oncebox.today() + $1);
