-- What is kept aside of a request that carried several events names the request as well: what such
-- an event is, and whether it is genuine, only the whole can tell. None of what was kept before.
-- From now on `requests.receipts` counts those that name it here, too.
ALTER TABLE oncebox.odd_arrivals ADD COLUMN request uuid, ADD COLUMN position integer;

-- Whether the bytes of a request count against the quota of its source. As long as it is there
-- only for what was kept aside they do not, like those of any odd arrival.
ALTER TABLE oncebox.requests ADD COLUMN counted boolean NOT NULL DEFAULT true;
