CREATE TABLE scrape_run (
    id VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    requested_by VARCHAR NOT NULL,
    started_at {moment} NOT NULL,
    finished_at {moment},
    status VARCHAR NOT NULL,
    counts {json} NOT NULL,
    reason_code VARCHAR NOT NULL,
    error TEXT,
    CONSTRAINT pk_scrape_run PRIMARY KEY (id),
    CONSTRAINT ck_scrape_run_status CHECK (status IN ('running', 'completed', 'failed'))
);
CREATE INDEX ix_scrape_run_source_id ON scrape_run (source, id);
CREATE TABLE source_state (
    source VARCHAR NOT NULL,
    etag TEXT NOT NULL,
    last_modified TEXT NOT NULL,
    cursor TEXT NOT NULL,
    scrape_run_id VARCHAR NOT NULL,
    scraped_at {moment},
    handed_version VARCHAR NOT NULL,
    ingested_version VARCHAR NOT NULL,
    CONSTRAINT pk_source_state PRIMARY KEY (source)
);
CREATE INDEX ix_work_failed ON work (kind, id) WHERE status = 'failed';
