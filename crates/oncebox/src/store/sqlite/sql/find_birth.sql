SELECT born_as, coalesce(service, '') FROM routes WHERE no = ?1;
