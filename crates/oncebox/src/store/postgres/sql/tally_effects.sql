-- The states are told so that the index of what is not done fits.
SELECT e.state, count(*), min(e.at)
FROM oncebox.known_effects AS e
WHERE e.written IN ('started', 'unknown')
GROUP BY e.state;
