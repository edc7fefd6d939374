SELECT oncebox.may_work($1);
