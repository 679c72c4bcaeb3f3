-- References that have no document of their newest content, page by page.
SELECT stored.reference_id, stored.payload_hash, stored.scrape_run_id
FROM refs.references AS stored
LEFT JOIN refs.documents AS made
  ON made.source = stored.source
  AND made.reference_id = stored.reference_id
  AND made.payload_hash = stored.payload_hash
WHERE stored.source = $source AND stored.reference_id > $after AND made.reference_id IS NULL
ORDER BY stored.reference_id
LIMIT $page
