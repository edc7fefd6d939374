SELECT epoch FROM oncebox.schema_epoch;
