-- The classifications that no factor matches, the most frequent first; `kinds` is their number, `of_all` that of their
-- results. Results that were calculated from other entries than the present ones have no classification.
WITH RECURSIVE below(year, unit_id) AS (
    SELECT unnest(CAST($years AS INTEGER[])), $unit
    UNION
    SELECT u.year, u.unit_id FROM carbon.units u JOIN below b ON u.parent_id = b.unit_id AND u.year = b.year
)
SELECT e.year, e.data_entry_type, e.emission_type,
       CASE WHEN NOT list_contains(CAST($changed AS VARCHAR[]), concat(e.data_entry_type, '|', e.year))
            THEN d.classification END AS classification,
       count(*) AS entries, count(DISTINCT e.unit_id) AS units,
       count(*) OVER () AS kinds, CAST(sum(count(*)) OVER () AS BIGINT) AS of_all
FROM carbon.data_entry_emissions e
LEFT JOIN carbon.data_entries d USING (year, data_entry_type, entry_key)
WHERE e.status = 'unmatched'
  AND list_contains($years, e.year)
  AND list_contains($types, e.data_entry_type)
  AND ($institution IS NULL OR d.institution = $institution)
  AND ($unit IS NULL OR EXISTS (FROM below b WHERE b.year = e.year AND b.unit_id = e.unit_id))
GROUP BY ALL
ORDER BY entries DESC, e.year DESC, e.data_entry_type, e.emission_type, classification
LIMIT $limit
