-- Whether days are closing; none begins to before the transaction ends.
SELECT day, state = 'closing' FROM oncebox.days WHERE day = ANY ($1) ORDER BY day FOR SHARE;
