-- The name ?2 leads to what is called ?1 now.
INSERT INTO former_source_names (name, source)
SELECT ?2, t.no FROM sources AS t WHERE t.name = ?1
ON CONFLICT (name) DO UPDATE SET source = excluded.source;
