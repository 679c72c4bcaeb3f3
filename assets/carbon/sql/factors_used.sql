SELECT factor_id, factor_version, emission_type, CAST(sum(results) AS BIGINT) AS entries, sum(mg) / 1e9 AS tonnes
FROM groups
WHERE factor_id IS NOT NULL
GROUP BY ALL
ORDER BY tonnes DESC, factor_id
LIMIT 50
