-- The year's factors after an upload, from their newest values. What the upload's types have and it lacks is stale.
WITH newest AS (
    SELECT * FROM versions QUALIFY row_number() OVER (PARTITION BY factor_id ORDER BY version DESC) = 1
),
uploaded_types AS (SELECT DISTINCT data_entry_type FROM incoming)
SELECT CAST($year AS INTEGER) AS year, n.factor_id, n.data_entry_type, n.emission_type, n.classification, n.value, n.unit,
       CASE WHEN i.factor_id IS NOT NULL THEN nullif(i.source, '') WHEN k.factor_id IS NOT NULL THEN k.source
            ELSE n.source END AS source,
       n.version,
       CASE WHEN i.factor_id IS NOT NULL THEN false
            WHEN n.data_entry_type IN (FROM uploaded_types) THEN true
            ELSE coalesce(k.stale, true) END AS stale,
       CASE WHEN i.factor_id IS NOT NULL THEN CAST($job AS BIGINT) ELSE coalesce(k.last_seen_job_id, n.job_id) END
           AS last_seen_job_id
FROM newest n LEFT JOIN incoming i USING (factor_id) LEFT JOIN factors k USING (factor_id)
ORDER BY n.data_entry_type, n.emission_type, n.classification
