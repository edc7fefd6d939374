UPDATE marks SET value = value + 1 WHERE name = 'repeats';
