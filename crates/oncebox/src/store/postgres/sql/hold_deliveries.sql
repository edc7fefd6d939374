-- Moves candidates that must wait out of the way of claims.
UPDATE oncebox.deliveries AS d
SET state = 'held', reason = h.reason
FROM unnest($1::uuid[], $2::smallint[], $3::text[]) AS h (receipt, route, reason)
WHERE d.receipt = h.receipt
  AND d.route = h.route
  AND d.state IN ('received', 'retrying');
