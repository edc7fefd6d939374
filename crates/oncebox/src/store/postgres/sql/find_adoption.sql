SELECT coalesce(max(no), 0) FROM oncebox.audit WHERE act = 'store.adopt' AND subject = $1;
