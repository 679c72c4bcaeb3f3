-- Results with their entries, factors, and the newest upload of each file.
WITH RECURSIVE below(unit_id) AS (
    SELECT $unit
    UNION
    SELECT u.unit_id FROM carbon.units u JOIN below b ON u.parent_id = b.unit_id WHERE u.year = $year
),
files AS (
    SELECT left(sha256, 16) AS file, kind, name, uploaded_by, uploaded_at
    FROM uploads
    WHERE accepted
    QUALIFY row_number() OVER (PARTITION BY left(sha256, 16), kind ORDER BY id DESC) = 1
)
SELECT e.data_entry_type, d.entry_id, e.unit_id, e.emission_type, e.status, e.mg_co2e / 1e6 AS kg_co2e,
       d.quantity, d.unit, d.classification, d.details, d.source AS entry_source,
       df.name AS data_file, d.line AS data_line, df.uploaded_by AS data_by, df.uploaded_at AS data_at,
       e.factor_id, e.factor_version, v.value AS factor_value, v.unit AS factor_unit, v.source AS factor_source,
       v.valid_from AS factor_from, ff.name AS factor_file, v.line AS factor_line, ff.uploaded_by AS factor_by
FROM carbon.data_entry_emissions e
JOIN carbon.data_entries d USING (year, data_entry_type, entry_key)
LEFT JOIN carbon.factor_versions v
    ON v.year = e.year AND v.factor_id = e.factor_id AND v.version = e.factor_version
LEFT JOIN files df ON df.file = d.file AND df.kind = 'data'
LEFT JOIN files ff ON ff.file = v.file AND ff.kind = 'factors'
WHERE e.year = $year
  AND list_contains($types, e.data_entry_type)
  AND ($unit IS NULL OR e.unit_id IN (FROM below))
  AND ($entry IS NULL OR d.entry_id = $entry)
ORDER BY e.mg_co2e DESC NULLS LAST, e.data_entry_type, d.entry_id, e.emission_type
LIMIT $limit
