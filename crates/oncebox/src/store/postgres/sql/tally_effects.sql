SELECT e.state, count(*), min(e.at)
FROM oncebox.known_effects AS e
WHERE e.written <> 'done'
GROUP BY e.state;
