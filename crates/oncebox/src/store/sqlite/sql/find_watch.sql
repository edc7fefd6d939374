SELECT EXISTS (SELECT 1 FROM watches WHERE name = 'tail' AND until > ?1);
