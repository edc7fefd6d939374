-- Waits for those who are opening deliveries of this day again.
UPDATE oncebox.days SET state = $2 WHERE day = $1 AND state IN ('open', 'closing');
