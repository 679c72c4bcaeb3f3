-- The schema as it was at 0005, the oldest that a home may have.
CREATE TABLE work (
    id {key},
    kind VARCHAR NOT NULL,
    key VARCHAR NOT NULL,
    fingerprint VARCHAR NOT NULL,
    params {json} NOT NULL,
    tenant VARCHAR NOT NULL,
    priority INTEGER NOT NULL,
    once BOOLEAN NOT NULL,
    parent_id BIGINT,
    status VARCHAR NOT NULL,
    reason_code VARCHAR NOT NULL,
    error_kind VARCHAR,
    error TEXT,
    attempts INTEGER NOT NULL,
    strikes INTEGER NOT NULL,
    max_attempts INTEGER,
    dispatches INTEGER NOT NULL,
    dispatch_id VARCHAR,
    repeats INTEGER NOT NULL,
    not_before {moment} NOT NULL,
    run_id VARCHAR,
    lease_until {moment},
    fence INTEGER NOT NULL,
    created_at {moment} NOT NULL,
    started_at {moment},
    updated_at {moment} NOT NULL,
    finished_at {moment},
    CONSTRAINT ck_work_status CHECK (status IN ('queued', 'deferred', 'running', 'completed', 'failed', 'skipped', 'cancelled'))
);
CREATE UNIQUE INDEX uq_work_waiting ON work (kind, key) WHERE status IN ('queued', 'deferred');
CREATE UNIQUE INDEX uq_work_running ON work (kind, key) WHERE status = 'running';
CREATE INDEX ix_work_kind_key_id ON work (kind, key, id);
CREATE INDEX ix_work_due ON work (kind, tenant, priority DESC, id) WHERE status IN ('queued', 'deferred');
CREATE INDEX ix_work_finished_at ON work (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX ix_work_unfinished ON work (kind, status, id) WHERE finished_at IS NULL;

CREATE TABLE work_event (
    id {key},
    work_id {id} NOT NULL,
    at {moment} NOT NULL,
    event VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    attempt INTEGER NOT NULL,
    run_id VARCHAR,
    reason_code VARCHAR NOT NULL,
    error_kind VARCHAR,
    error TEXT,
    CONSTRAINT fk_work_event_work_id_work FOREIGN KEY(work_id) REFERENCES work (id) ON DELETE CASCADE
);
CREATE INDEX ix_work_event_work_id_id ON work_event (work_id, id);

CREATE TABLE pipeline_member (
    pipeline_id VARCHAR NOT NULL,
    work_id {id} NOT NULL,
    CONSTRAINT pk_pipeline_member PRIMARY KEY (pipeline_id, work_id),
    CONSTRAINT fk_pipeline_member_work_id_work FOREIGN KEY(work_id) REFERENCES work (id) ON DELETE CASCADE
);
CREATE INDEX ix_pipeline_member_work_id ON pipeline_member (work_id);

CREATE TABLE partition_fact (
    table_name VARCHAR NOT NULL,
    partition VARCHAR NOT NULL,
    rows BIGINT NOT NULL,
    digest VARCHAR NOT NULL,
    snapshot_id BIGINT,
    inputs {json} NOT NULL,
    detail {json} NOT NULL,
    seen_count INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    committed_at {moment} NOT NULL,
    checked_at {moment} NOT NULL,
    run_id VARCHAR NOT NULL,
    CONSTRAINT pk_partition_fact PRIMARY KEY (table_name, partition)
);

CREATE TABLE partition_revision (
    id {key},
    table_name VARCHAR NOT NULL,
    partition VARCHAR NOT NULL,
    generation INTEGER NOT NULL,
    old_rows BIGINT NOT NULL,
    old_digest VARCHAR NOT NULL,
    new_rows BIGINT NOT NULL,
    new_digest VARCHAR NOT NULL,
    old_snapshot_id BIGINT,
    new_snapshot_id BIGINT,
    seen_at {moment} NOT NULL,
    recorded BOOLEAN NOT NULL
);
CREATE UNIQUE INDEX uq_partition_revision_generation ON partition_revision (table_name, partition, generation);
CREATE INDEX ix_partition_revision_pending ON partition_revision (id) WHERE recorded IS {false};

CREATE TABLE source_freshness (
    source VARCHAR NOT NULL,
    last_success {moment},
    last_failure {moment},
    last_error TEXT,
    rows_today BIGINT,
    rows_latest BIGINT,
    updated_at {moment} NOT NULL,
    CONSTRAINT pk_source_freshness PRIMARY KEY (source)
);

CREATE TABLE pace (
    source VARCHAR NOT NULL,
    window_start {moment} NOT NULL,
    used INTEGER NOT NULL,
    CONSTRAINT pk_pace PRIMARY KEY (source, window_start)
);

CREATE TABLE setting (
    name VARCHAR NOT NULL,
    value TEXT NOT NULL,
    CONSTRAINT pk_setting PRIMARY KEY (name)
);

CREATE TABLE upload (
    id {key},
    kind VARCHAR NOT NULL,
    topic VARCHAR NOT NULL,
    institution VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    sha256 VARCHAR NOT NULL,
    bytes BIGINT NOT NULL,
    rows BIGINT NOT NULL,
    taken BIGINT NOT NULL,
    problem_count BIGINT NOT NULL,
    problems {json} NOT NULL,
    warnings {json} NOT NULL,
    accepted BOOLEAN NOT NULL,
    uploaded_by VARCHAR NOT NULL,
    uploaded_at {moment} NOT NULL,
    pipeline_id VARCHAR NOT NULL
);
CREATE INDEX ix_upload_pipeline_id ON upload (pipeline_id);
CREATE INDEX ix_upload_place ON upload (accepted, kind, topic, institution, source, id);

CREATE TABLE upload_year (
    upload_id {id} NOT NULL,
    year INTEGER NOT NULL,
    work_id BIGINT,
    CONSTRAINT pk_upload_year PRIMARY KEY (upload_id, year),
    CONSTRAINT fk_upload_year_upload_id_upload FOREIGN KEY(upload_id) REFERENCES upload (id) ON DELETE CASCADE
);

CREATE TABLE year_lock (
    id {key},
    year INTEGER NOT NULL,
    locked_at {moment} NOT NULL,
    locked_by VARCHAR NOT NULL,
    reason TEXT NOT NULL,
    unlocked_at {moment},
    unlocked_by VARCHAR,
    unlock_reason TEXT
);
CREATE UNIQUE INDEX uq_year_lock_held ON year_lock (year) WHERE unlocked_at IS NULL;

CREATE TABLE feed_place (
    source VARCHAR NOT NULL,
    institution VARCHAR NOT NULL,
    topic VARCHAR NOT NULL,
    year INTEGER NOT NULL,
    version VARCHAR NOT NULL,
    heard_at {moment} NOT NULL,
    CONSTRAINT pk_feed_place PRIMARY KEY (source, institution, topic, year)
);

CREATE TABLE dropped_file (
    id {key},
    key VARCHAR NOT NULL,
    stamp VARCHAR NOT NULL,
    noted_at {moment} NOT NULL,
    uploads_before BIGINT NOT NULL,
    upload_id BIGINT,
    moved_to VARCHAR,
    moved_at {moment},
    finished_at {moment}
);
CREATE UNIQUE INDEX uq_dropped_file_open ON dropped_file (key) WHERE finished_at IS NULL;
CREATE INDEX ix_dropped_file_key_id ON dropped_file (key, id);
CREATE INDEX ix_dropped_file_upload_id ON dropped_file (upload_id);
CREATE INDEX ix_dropped_file_moved_at ON dropped_file (moved_at);
