UPDATE delivery_counts SET folded = came WHERE folded < came;
