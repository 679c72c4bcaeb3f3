SELECT year, scope, CAST(sum(own_mg) AS BIGINT) AS mg, CAST(sum(own_unmatched) AS BIGINT) AS unmatched
FROM carbon.carbon_reports
WHERE $unit IS NULL AND year <= $year
GROUP BY ALL
ORDER BY ALL
