WITH RECURSIVE below(unit_id) AS (
    SELECT $unit
    UNION
    SELECT u.unit_id FROM carbon.units u JOIN below b ON u.parent_id = b.unit_id WHERE u.year = $year
),
used AS (
    SELECT factor_id, sum(mg_co2e) AS mg
    FROM carbon.data_entry_emissions
    WHERE year = $year AND factor_id IS NOT NULL AND ($unit IS NULL OR unit_id IN (FROM below))
    GROUP BY ALL
)
SELECT f.data_entry_type, f.source, count(*) AS factors, count(*) FILTER (WHERE f.stale) AS stale,
       CAST(sum(u.mg) AS BIGINT) AS mg
FROM used u JOIN carbon.factors f USING (factor_id)
WHERE f.year = $year
GROUP BY ALL
ORDER BY f.data_entry_type, mg DESC
