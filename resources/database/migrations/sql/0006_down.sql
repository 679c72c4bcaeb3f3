DROP INDEX ix_work_due;
CREATE INDEX ix_work_due ON work (kind, tenant, priority DESC, id) WHERE status IN ('queued', 'deferred');
UPDATE work SET reason_code = 'asked_for' WHERE reason_code = 'requested';
UPDATE work_event SET reason_code = 'asked_for' WHERE reason_code = 'requested';
ALTER TABLE feed_place RENAME COLUMN reported_at TO heard_at;
ALTER TABLE work RENAME COLUMN recurrence TO repeats;
ALTER TABLE work RENAME COLUMN crash_count TO strikes;
UPDATE work
SET status = 'cancelled',
    reason_code = CASE WHEN reason_code IN ('done_meanwhile', 'outside_window') THEN reason_code ELSE 'superseded' END
WHERE status = 'superseded';
