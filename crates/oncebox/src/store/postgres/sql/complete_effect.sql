-- Only by whoever began it last, and under a lease that is still good; tells how many deliveries
-- were held for it and are let go. Nobody holds one for an effect that somebody is at, so none is
-- missed.
WITH done AS (
    UPDATE oncebox.effects AS e
    SET state = 'done', result = $5, at = statement_timestamp()
    WHERE e.key = $1
      AND e.state = 'started'
      AND e.receipt = $2
      AND e.route = $3
      AND e.epoch = $4
      AND EXISTS (
          SELECT 1 FROM oncebox.deliveries AS d
          WHERE d.receipt = $2
            AND d.route = $3
            AND d.epoch = $4
            AND d.lease_until > statement_timestamp()
      )
    RETURNING e.key
)
SELECT oncebox.release_parked(d.key) FROM done AS d;
