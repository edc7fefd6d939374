-- Never lowered: a program that was stopped must not write again.
UPDATE oncebox.schema_epoch SET epoch = $1, raised_at = now() WHERE epoch < $1;
