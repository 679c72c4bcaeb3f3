WITH RECURSIVE below(unit_id) AS (
    SELECT $unit
    UNION
    SELECT u.unit_id FROM carbon.units u JOIN below b ON u.parent_id = b.unit_id WHERE u.year = $year
)
SELECT data_entry_type, emission_type, CAST(sum(mg_co2e) AS BIGINT) AS mg, CAST(sum(entries) AS BIGINT) AS entries,
       CAST(sum(unmatched) AS BIGINT) AS unmatched, CAST(sum(overridden) AS BIGINT) AS overridden
FROM carbon.carbon_report_modules
WHERE year = $year AND ($unit IS NULL OR unit_id IN (FROM below))
GROUP BY ALL
ORDER BY ALL
