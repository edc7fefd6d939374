UPDATE guards SET head = ?3, tail = ?4 WHERE source = ?1 AND key = ?2;
