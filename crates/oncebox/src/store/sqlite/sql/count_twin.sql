UPDATE guards SET held = held + ?3, types = types + ?4 WHERE source = ?1 AND key = ?2;
