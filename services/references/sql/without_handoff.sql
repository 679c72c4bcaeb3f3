-- References whose newest content has no hand-off.
SELECT stored.reference_id, stored.payload_hash, stored.scrape_run_id
FROM refs.references AS stored
ANTI JOIN handed
  ON handed.reference_id = stored.reference_id
  AND handed.payload_hash = stored.payload_hash
  AND handed.scrape_run_id >= stored.scrape_run_id
WHERE stored.source = $source
