-- A delivery whose stored body does not match its digest is held for a person to look at. What is
-- there holds to the old check, which is narrower, so it need not be looked at.
ALTER TABLE oncebox.deliveries
    DROP CONSTRAINT IF EXISTS deliveries_reason_check,
    ADD CONSTRAINT deliveries_reason_check CHECK (
        reason IN ('order', 'same-operation', 'unknown-effect', 'twin', 'conflict', 'damaged')
    ) NOT VALID;

-- As before, but a body that does not match its digest is told to nobody: its delivery is held.
CREATE OR REPLACE FUNCTION oncebox.tell(leased oncebox.deliveries[], of_route text)
RETURNS SETOF oncebox.claimed
LANGUAGE plpgsql
AS $$
DECLARE
    damaged uuid[];
BEGIN
    SELECT coalesce(array_agg(d.receipt), '{}') INTO damaged
    FROM unnest(leased) AS d
    CROSS JOIN LATERAL (
        SELECT r.body, r.digest FROM oncebox.receipts AS r WHERE r.id = d.receipt OFFSET 0
    ) AS r
    WHERE sha256(r.body) <> r.digest;
    IF damaged <> '{}' THEN
        UPDATE oncebox.deliveries AS d
        SET
            state = 'held',
            reason = 'damaged',
            attempts = d.attempts - 1,
            lease_until = NULL,
            worker = NULL,
            lost = false,
            detail = 'the stored body does not match the digest taken when it arrived'
        FROM unnest(leased) AS l
        WHERE d.receipt = l.receipt AND d.route = l.route AND l.receipt = ANY (damaged);
        RAISE WARNING 'oncebox holds deliveries of damaged receipts: %', damaged;
    END IF;
    RETURN QUERY
    SELECT
        d.receipt || '.' || d.route, d.epoch, d.receipt, s.name, r.event_id, r.event_type,
        r.object, r.version, r.received_at, d.attempts, d.replays,
        oncebox.delivery_key(s.born_as, r.event_id, of_route), oncebox.headers_of(r.headers),
        r.body
    FROM unnest(leased) AS d
    CROSS JOIN LATERAL (
        SELECT s.name, s.born_as FROM oncebox.sources AS s WHERE s.no = d.source OFFSET 0
    ) AS s
    CROSS JOIN LATERAL (
        SELECT r.* FROM oncebox.receipts AS r WHERE r.id = d.receipt OFFSET 0
    ) AS r
    WHERE d.receipt <> ALL (damaged)
    ORDER BY d.due_at, d.receipt;
END
$$;
