SELECT year, scope, CAST(sum(total_mg) AS BIGINT) AS mg, CAST(sum(total_unmatched) AS BIGINT) AS unmatched
FROM carbon.carbon_reports
WHERE unit_id = $unit AND year <= $year
GROUP BY ALL
ORDER BY ALL
