UPDATE work SET status = 'superseded'
WHERE status = 'cancelled' AND reason_code IN ('superseded', 'done_meanwhile', 'outside_window');
ALTER TABLE work RENAME COLUMN strikes TO crash_count;
ALTER TABLE work RENAME COLUMN repeats TO recurrence;
ALTER TABLE feed_place RENAME COLUMN heard_at TO reported_at;
UPDATE work SET reason_code = 'requested' WHERE reason_code = 'asked_for';
UPDATE work_event SET reason_code = 'requested' WHERE reason_code = 'asked_for';
-- With these two columns more, `backlog` reads nothing but the index.
DROP INDEX ix_work_due;
CREATE INDEX ix_work_due ON work (kind, tenant, priority DESC, id, not_before, created_at)
WHERE status IN ('queued', 'deferred');
