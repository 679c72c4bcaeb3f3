-- The contents that have a document.
SELECT contents.reference_id
FROM contents
JOIN refs.documents AS stored
  ON stored.source = contents.source
  AND stored.reference_id = contents.reference_id
  AND stored.payload_hash = contents.payload_hash
