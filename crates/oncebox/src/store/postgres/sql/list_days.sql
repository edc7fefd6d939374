SELECT day, state FROM oncebox.days ORDER BY day;
