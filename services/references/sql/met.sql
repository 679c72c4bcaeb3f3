-- What a source gave, beside what is stored of it.
SELECT met.*, stored.payload_hash AS stored_hash, stored.scrape_run_id AS stored_by
FROM met
LEFT JOIN refs.references AS stored ON stored.source = met.source AND stored.reference_id = met.reference_id
