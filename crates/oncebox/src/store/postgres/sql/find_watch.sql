SELECT EXISTS (
    SELECT 1 FROM oncebox.watches WHERE name = 'tail' AND until > statement_timestamp()
);
