SELECT value FROM marks WHERE name = 'clock';
