SELECT w.source, max(w.payloads_s), max(w.identities_s)
FROM oncebox.source_windows AS w
GROUP BY w.source;
