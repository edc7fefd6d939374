DELETE FROM paired_secrets WHERE source = ?1 AND no = ?2;
