-- What is due was due before the wall clock was set back, and what is tried again is as far away
-- as it was put off when its last attempt ended.
UPDATE deliveries
SET due_at = ?1 + iif(
    state = 'received',
    0,
    max(0, due_at - (
        SELECT max(a.ended_at) FROM attempts AS a
        WHERE a.receipt = deliveries.receipt AND a.route = deliveries.route
    ))
)
WHERE due_at > ?1
  AND (
    state = 'received'
    OR state = 'retrying' AND (
        SELECT max(a.ended_at) FROM attempts AS a
        WHERE a.receipt = deliveries.receipt AND a.route = deliveries.route
    ) > ?1
  );
