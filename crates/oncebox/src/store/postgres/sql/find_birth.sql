SELECT born_as, coalesce(service, '') FROM oncebox.routes WHERE no = $1;
