INSERT INTO oncebox.audit (at, who, via, act, subject, why) VALUES ($1, $2, $3, $4, $5, $6);
