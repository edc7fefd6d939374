SELECT no, at, who, via, act, subject, why
FROM oncebox.audit
WHERE no < $1
ORDER BY no DESC
LIMIT $2;
