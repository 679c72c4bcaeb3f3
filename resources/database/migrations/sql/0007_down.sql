UPDATE work SET key = 'dropped_files' || substr(key, 12)
WHERE kind = 'carbon.file_ingest' AND substr(key, 1, 12) = 'inbox_files:';
ALTER TABLE upload DROP COLUMN modified_at;
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
