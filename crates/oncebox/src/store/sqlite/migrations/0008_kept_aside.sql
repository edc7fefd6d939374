-- What is kept aside of a request that carried several events names the request as well: what such
-- an event is, and whether it is genuine, only the whole can tell. None of what was kept before.
ALTER TABLE odd_arrivals ADD COLUMN request INTEGER;
ALTER TABLE odd_arrivals ADD COLUMN position INTEGER;

-- Says, together with that of the receipts, whether the last event of a request has gone.
CREATE INDEX odd_arrivals_request ON odd_arrivals (request) WHERE request IS NOT NULL;

-- Whether the bytes of a request count against the quota of its source. As long as it is there
-- only for what was kept aside they do not, like those of any odd arrival.
ALTER TABLE requests ADD COLUMN counted INTEGER NOT NULL DEFAULT 1;
