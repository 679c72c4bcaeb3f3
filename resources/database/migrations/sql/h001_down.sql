DROP VIEW ingestion_jobs;
DROP TABLE handoff_scrape;
DROP TABLE ingestion_handoffs;
UPDATE source_state SET handed_version = '';
