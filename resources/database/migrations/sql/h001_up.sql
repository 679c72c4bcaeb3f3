CREATE TABLE ingestion_handoffs (
    id {key},
    reference_id VARCHAR NOT NULL,
    payload_hash VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    reason_code VARCHAR NOT NULL,
    attempts INTEGER NOT NULL,
    work_id BIGINT,
    error TEXT,
    scrape_run_id VARCHAR NOT NULL,
    created_at {moment} NOT NULL,
    updated_at {moment} NOT NULL,
    finished_at {moment},
    CONSTRAINT uq_ingestion_handoffs_reference_id_payload_hash UNIQUE (reference_id, payload_hash),
    CONSTRAINT ck_ingestion_handoffs_status CHECK (status IN ('queued', 'running', 'completed', 'failed'))
);
CREATE INDEX ix_ingestion_handoffs_source_id ON ingestion_handoffs (source, id);
CREATE INDEX ix_ingestion_handoffs_unfinished ON ingestion_handoffs (source, status, id) WHERE status IN ('queued', 'running', 'failed');
CREATE TABLE handoff_scrape (
    scrape_run_id VARCHAR NOT NULL,
    handoff_id {id} NOT NULL,
    CONSTRAINT pk_handoff_scrape PRIMARY KEY (scrape_run_id, handoff_id),
    CONSTRAINT fk_handoff_scrape_handoff_id_ingestion_handoffs FOREIGN KEY(handoff_id) REFERENCES ingestion_handoffs (id) ON DELETE CASCADE
);
CREATE INDEX ix_handoff_scrape_handoff_id ON handoff_scrape (handoff_id);
CREATE VIEW ingestion_jobs AS
SELECT id, tenant AS source, substr(key, 11) AS reference_id, fingerprint AS payload_hash,
    CASE WHEN status IN ('completed', 'skipped') THEN 'ready'
        WHEN status IN ('queued', 'deferred') THEN 'queued'
        WHEN status = 'running' THEN 'running'
        ELSE 'failed'
    END AS status,
    reason_code, error, attempts, not_before, created_at, started_at, updated_at, finished_at
FROM work
WHERE kind = 'references.ingest';
UPDATE source_state SET handed_version = '';
