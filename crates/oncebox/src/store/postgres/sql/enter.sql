-- Has this transaction work on a delivery, also for what is called through SQL in it.
SELECT oncebox.enter($1, $2);
