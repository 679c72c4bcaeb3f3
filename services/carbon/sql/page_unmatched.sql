-- The classifications that no factor matches, the most frequent first; `kinds` is their number.
-- Results that were calculated from other entries than the present ones have no classification.
WITH RECURSIVE below(unit_id) AS (
    SELECT $unit
    UNION
    SELECT u.unit_id FROM carbon.units u JOIN below b ON u.parent_id = b.unit_id WHERE u.year = $year
)
SELECT e.data_entry_type, e.emission_type, d.classification, count(*) AS entries, count(*) OVER () AS kinds
FROM carbon.data_entry_emissions e
LEFT JOIN carbon.data_entries d
    ON d.year = e.year AND d.data_entry_type = e.data_entry_type AND d.entry_key = e.entry_key
    AND NOT list_contains(CAST($changed AS VARCHAR[]), d.data_entry_type)
WHERE e.year = $year AND e.status = 'unmatched' AND ($unit IS NULL OR e.unit_id IN (FROM below))
GROUP BY ALL
ORDER BY entries DESC, e.data_entry_type, e.emission_type, d.classification
LIMIT 20
