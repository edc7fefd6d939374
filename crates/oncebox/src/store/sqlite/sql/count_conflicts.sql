SELECT value FROM marks WHERE name = 'conflicts';
