SELECT value FROM marks WHERE name = 'stopped';
