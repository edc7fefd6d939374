DELETE FROM rejected WHERE head < ?1;
