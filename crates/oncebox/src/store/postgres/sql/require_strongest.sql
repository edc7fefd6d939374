UPDATE oncebox.sources SET proved_strongest = true WHERE no = $1 AND NOT proved_strongest;
