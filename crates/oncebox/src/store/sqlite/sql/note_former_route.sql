-- The name ?2 leads to what is called ?1 now.
INSERT INTO former_route_names (name, route)
SELECT ?2, t.no FROM routes AS t WHERE t.name = ?1
ON CONFLICT (name) DO UPDATE SET route = excluded.route;
