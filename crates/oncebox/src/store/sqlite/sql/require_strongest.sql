UPDATE sources SET proved_strongest = 1 WHERE no = ?1 AND proved_strongest = 0;
