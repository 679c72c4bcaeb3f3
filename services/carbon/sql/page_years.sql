-- A unit's total has everything below it; the total of all units is the sum of what each has alone.
SELECT year, scope, CAST(sum(CASE WHEN $unit IS NULL THEN own_mg ELSE total_mg END) AS BIGINT) AS mg,
       CAST(sum(CASE WHEN $unit IS NULL THEN own_unmatched ELSE total_unmatched END) AS BIGINT) AS unmatched
FROM carbon.carbon_reports
WHERE year <= $year AND ($unit IS NULL OR unit_id = $unit)
GROUP BY ALL
ORDER BY ALL
