-- A reference as it is stored, beside its document.
SELECT
    stored.* EXCLUDE (payload),
    made.payload_hash AS document_hash,
    made.title AS document_title,
    made.ingested_by,
    made.ingested_at
FROM refs.references AS stored
LEFT JOIN refs.documents AS made ON made.source = stored.source AND made.reference_id = stored.reference_id
WHERE stored.source = $source AND stored.reference_id = $reference_id
