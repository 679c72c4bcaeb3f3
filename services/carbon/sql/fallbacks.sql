-- Entries that are counted with a factor of other words than their own, by both, the heaviest first. Only entries whose
-- words lack a factor for at least one kind of emissions are joined with their results.
WITH RECURSIVE below(unit_id) AS (
    SELECT $unit
    UNION
    SELECT u.unit_id FROM carbon.units u JOIN below b ON u.parent_id = b.unit_id WHERE u.year = $year
),
known AS (
    SELECT data_entry_type, emission_type, classification, factor_id
    FROM carbon.factors
    WHERE year = $year AND list_contains($types, data_entry_type)
),
kinds AS (SELECT data_entry_type, count(DISTINCT emission_type) AS of_all FROM known GROUP BY ALL),
wanted AS (
    SELECT DISTINCT data_entry_type, classification
    FROM carbon.data_entries
    WHERE year = $year AND list_contains($types, data_entry_type)
),
gaps AS (
    SELECT data_entry_type, classification
    FROM wanted w JOIN kinds USING (data_entry_type) LEFT JOIN known k USING (data_entry_type, classification)
    GROUP BY ALL
    HAVING count(DISTINCT k.emission_type) < any_value(of_all)
)
SELECT e.data_entry_type, d.classification AS wanted, k.classification AS used,
       count(DISTINCT e.entry_key) AS entries, count(*) AS results, CAST(sum(e.mg_co2e) AS BIGINT) AS mg
FROM gaps
JOIN carbon.data_entries d USING (data_entry_type, classification)
JOIN carbon.data_entry_emissions e ON e.year = $year AND e.data_entry_type = d.data_entry_type AND e.entry_key = d.entry_key
JOIN known k USING (factor_id)
WHERE d.year = $year AND d.classification <> k.classification AND ($unit IS NULL OR e.unit_id IN (FROM below))
GROUP BY ALL
ORDER BY mg DESC, e.data_entry_type, wanted, used
