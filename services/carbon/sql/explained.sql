-- Results with their entries, their factors, and the uploads of both. The same bytes may have been uploaded for
-- several scopes: of data it is the newest upload of the entry's own scope, of factors the one of that moment.
-- An entry's key is made of its source and id, so these two are right even if the entry changed. The other columns of
-- an entry are shown only of types whose results were calculated from the present entries.
WITH RECURSIVE below(unit_id) AS (
    SELECT $unit
    UNION
    SELECT u.unit_id FROM carbon.units u JOIN below b ON u.parent_id = b.unit_id WHERE u.year = $year
),
data_files AS (
    SELECT left(sha256, 16) AS file, topic, institution, source, name, uploaded_by, uploaded_at
    FROM uploads
    WHERE accepted AND kind = 'data'
    QUALIFY row_number() OVER (PARTITION BY left(sha256, 16), topic, institution, source ORDER BY id DESC) = 1
),
factor_files AS (
    SELECT left(sha256, 16) AS file, name, uploaded_by, uploaded_at
    FROM uploads
    WHERE accepted AND kind = 'factors'
    QUALIFY row_number() OVER (PARTITION BY left(sha256, 16), uploaded_at ORDER BY id DESC) = 1
)
SELECT e.data_entry_type, k.entry_id, e.unit_id, e.emission_type, e.status, e.mg_co2e / 1e6 AS kg_co2e,
       d.quantity, d.unit, d.classification, d.details, k.source AS entry_source,
       df.name AS data_file, d.line AS data_line, df.uploaded_by AS data_by, df.uploaded_at AS data_at,
       e.factor_id, e.factor_version, v.value AS factor_value, v.unit AS factor_unit, v.source AS factor_source,
       v.classification AS factor_words,
       v.valid_from AS factor_from, ff.name AS factor_file, v.line AS factor_line, ff.uploaded_by AS factor_by,
       list_contains(CAST($changed AS VARCHAR[]), e.data_entry_type) AS entry_changed,
       count(*) OVER () AS of_all
FROM carbon.data_entry_emissions e
LEFT JOIN carbon.data_entries k USING (year, data_entry_type, entry_key)
LEFT JOIN carbon.data_entries d
    ON d.year = e.year AND d.data_entry_type = e.data_entry_type AND d.entry_key = e.entry_key
    AND NOT list_contains(CAST($changed AS VARCHAR[]), d.data_entry_type)
LEFT JOIN carbon.factor_versions v
    ON v.year = e.year AND v.factor_id = e.factor_id AND v.version = e.factor_version
LEFT JOIN data_files df
    ON df.file = d.file AND df.topic = d.data_entry_type AND df.institution = d.institution AND df.source = d.source
LEFT JOIN factor_files ff ON ff.file = v.file AND ff.uploaded_at = v.valid_from
WHERE e.year = $year
  AND list_contains($types, e.data_entry_type)
  AND ($unit IS NULL OR e.unit_id IN (FROM below))
  AND ($institution IS NULL OR k.institution = $institution)
  AND ($entry IS NULL OR k.entry_id = $entry)
ORDER BY e.mg_co2e DESC NULLS LAST, e.data_entry_type, k.entry_id, e.emission_type
LIMIT $limit
