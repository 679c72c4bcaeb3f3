DROP INDEX ix_work_failed;
DROP TABLE source_state;
DROP TABLE scrape_run;
