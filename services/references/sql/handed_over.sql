-- The newest contents that were handed over.
SELECT stored.reference_id, stored.payload_hash, stored.scrape_run_id
FROM refs.references AS stored
JOIN handed
  ON handed.reference_id = stored.reference_id
  AND handed.payload_hash = stored.payload_hash
  AND handed.status = 'completed'
WHERE stored.source = $source
