-- What is open. Whoever is at an effect under a lease that has ended leaves it unknown.
SELECT
    iif(
        e.state = 'started' AND EXISTS (
            SELECT 1 FROM deliveries AS d
            WHERE d.receipt = e.receipt AND d.route = e.route AND d.state = 'processing'
              AND d.epoch = e.epoch AND d.lease_until > ?1
        ),
        'started',
        'unknown'
    ) AS seen,
    count(*),
    min(e.at)
FROM effects AS e INDEXED BY effects_open
WHERE e.state <> 'done'
GROUP BY seen;
