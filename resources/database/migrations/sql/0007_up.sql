DROP TABLE dropped_file;
ALTER TABLE upload ADD COLUMN modified_at {moment};
UPDATE work SET key = 'inbox_files' || substr(key, 14)
WHERE kind = 'carbon.file_ingest' AND substr(key, 1, 14) = 'dropped_files:';
