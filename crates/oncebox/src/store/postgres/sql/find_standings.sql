SELECT
    w.receipt,
    w.route,
    coalesce(
        (
            SELECT d.state FROM oncebox.deliveries AS d
            WHERE d.receipt = w.receipt AND d.route = w.route
        ),
        (
            SELECT f.state FROM oncebox.finished AS f
            WHERE f.receipt = w.receipt AND f.receipt = ANY ($1) AND f.route = w.route
        )
    )
FROM unnest($1::uuid[], $2::smallint[]) AS w (receipt, route);
