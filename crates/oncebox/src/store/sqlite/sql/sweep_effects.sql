SELECT key, state, at, iif(kind = 'message', result, NULL)
FROM effects
WHERE key > ?1
ORDER BY key
LIMIT ?2;
