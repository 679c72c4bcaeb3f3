DROP VIEW ingestion_jobs;
DROP TABLE handoff_scrape;
DROP TABLE ingestion_handoffs;
