SELECT born_as FROM oncebox.routes WHERE no = $1;
