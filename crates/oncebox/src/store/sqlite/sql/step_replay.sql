-- Changes nothing once the job was cancelled or somebody else has it.
UPDATE replays
SET
    opened = opened + ?5,
    passed = passed + ?6,
    cursor_head = ?7,
    cursor_tail = ?8,
    cursor_route = ?9,
    phase = iif(?10, 'done', phase),
    lease_until = ?4
WHERE id = ?1 AND epoch = ?2 AND phase = 'running' AND lease_until > ?3;
