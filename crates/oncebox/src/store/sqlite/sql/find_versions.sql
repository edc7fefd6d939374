-- The version of the delivery, where it is guarded by the object, and the watermark of the object.
SELECT
    (
        SELECT d.place FROM deliveries AS d
        WHERE d.receipt = ?1 AND d.route = ?2 AND d.lane = ?4
    ),
    (
        SELECT l.applied FROM lanes AS l
        WHERE l.route = ?2 AND l.source = ?3 AND l.object = ?4
    );
