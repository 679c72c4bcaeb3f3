-- Stale factors: what was calculated with them, and the line of the file that has their value.
WITH used AS (
    SELECT year, factor_id, count(*) AS entries, sum(mg_co2e) / 1e9 AS tonnes
    FROM carbon.data_entry_emissions
    WHERE $year IS NULL OR year = $year
    GROUP BY ALL
),
factor_files AS (
    SELECT left(sha256, 16) AS file, name, uploaded_by, uploaded_at
    FROM uploads
    WHERE accepted AND kind = 'factors'
    QUALIFY row_number() OVER (PARTITION BY left(sha256, 16), uploaded_at ORDER BY id DESC) = 1
)
SELECT f.year, f.data_entry_type, f.emission_type, f.classification, f.value, f.unit,
       coalesce(u.entries, 0) AS entries, coalesce(u.tonnes, 0.0) AS tonnes,
       ff.name AS file, v.line, v.valid_from AS uploaded_at, ff.uploaded_by, f.last_seen_job_id
FROM carbon.factors f
LEFT JOIN used u USING (year, factor_id)
LEFT JOIN carbon.factor_versions v USING (year, factor_id, version)
LEFT JOIN factor_files ff ON ff.file = v.file AND ff.uploaded_at = v.valid_from
WHERE f.stale AND ($year IS NULL OR f.year = $year)
ORDER BY tonnes DESC, f.year, f.data_entry_type, f.emission_type, f.classification
