DELETE FROM oncebox.rejected WHERE id < $1;
