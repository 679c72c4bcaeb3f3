DROP INDEX ix_scrape_run_running;
ALTER TABLE scrape_run DROP COLUMN alive_at;
DROP INDEX ix_work_refused;
CREATE INDEX ix_work_failed ON work (kind, id) WHERE status = 'failed';
