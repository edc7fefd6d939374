-- The version of the event, where it is about the object, and the watermark of the object.
SELECT
    (SELECT r.version FROM receipts AS r WHERE r.head = ?1 AND r.object = ?4),
    (
        SELECT l.applied FROM lanes AS l
        WHERE l.route = ?2 AND l.source = ?3 AND l.object = ?4
    );
