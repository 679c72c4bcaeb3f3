CREATE TABLE feed_content_kept AS SELECT * FROM feed_content WHERE kind = 'entries';
DROP TABLE feed_content;
CREATE TABLE feed_content (
    source VARCHAR NOT NULL,
    institution VARCHAR NOT NULL,
    topic VARCHAR NOT NULL,
    year INTEGER NOT NULL,
    version VARCHAR NOT NULL,
    reported_at {moment} NOT NULL,
    CONSTRAINT pk_feed_content PRIMARY KEY (source, institution, topic, year)
);
INSERT INTO feed_content (source, institution, topic, year, version, reported_at)
    SELECT source, institution, topic, year, version, reported_at FROM feed_content_kept;
DROP TABLE feed_content_kept;
