-- References that were handed over and have no document of their newest content.
SELECT stored.reference_id, stored.payload_hash, stored.scrape_run_id
FROM refs.references AS stored
JOIN handed
  ON handed.reference_id = stored.reference_id
  AND handed.payload_hash = stored.payload_hash
  AND handed.status = 'completed'
LEFT JOIN refs.documents AS made
  ON made.source = stored.source
  AND made.reference_id = stored.reference_id
  AND made.payload_hash = stored.payload_hash
WHERE stored.source = $source AND made.reference_id IS NULL
