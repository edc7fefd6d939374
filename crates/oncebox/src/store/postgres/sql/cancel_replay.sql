UPDATE oncebox.replays SET phase = 'cancelled' WHERE id = $1 AND phase = 'running';
