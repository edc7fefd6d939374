-- Takes a key, or a step of the delivery by its name. No row if the lease is not good any more.
SELECT k.key, oncebox.take_effect(k.key, $4, $1, $2, $3, w.attempt, $6) AS taken
FROM oncebox.find_work($1::uuid, $2::smallint, $3::bigint) AS w
CROSS JOIN LATERAL (
    SELECT
        CASE
            WHEN $4::text = 'step' THEN $1 || '/' || t.born_as || '/' || $5
            WHEN coalesce(t.service, '') = '' THEN $5
            ELSE '@' || t.service || '/' || $5
        END AS key
    FROM oncebox.routes AS t
    WHERE t.no = $2
) AS k
WHERE w.attempt IS NOT NULL;
