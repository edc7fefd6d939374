DELETE FROM oncebox.paired_secrets WHERE source = $1 AND no = $2;
