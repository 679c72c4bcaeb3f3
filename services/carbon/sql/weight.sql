SELECT CAST(coalesce(sum(mg_co2e), 0) AS BIGINT) AS mg, count(*) FILTER (WHERE status = 'unmatched') AS unmatched
FROM {emissions}
WHERE {where}
