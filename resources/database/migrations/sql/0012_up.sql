DROP INDEX ix_work_failed;
CREATE INDEX ix_work_refused ON work (kind, id) WHERE status IN ('failed', 'cancelled');
ALTER TABLE scrape_run ADD COLUMN alive_at {moment};
CREATE INDEX ix_scrape_run_running ON scrape_run (source) WHERE status = 'running';
