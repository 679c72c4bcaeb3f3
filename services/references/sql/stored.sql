-- The newest contents of a source, page by page.
SELECT stored.reference_id, stored.payload_hash, stored.scrape_run_id
FROM refs.references AS stored
WHERE stored.source = $source AND stored.reference_id > $after
ORDER BY stored.reference_id
LIMIT $page
