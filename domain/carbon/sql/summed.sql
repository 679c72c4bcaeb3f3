SELECT unit_id, data_entry_type, emission_type,
       CAST(coalesce(sum(mg_co2e), 0) AS BIGINT) AS mg_co2e,
       count(*) AS entries,
       count(*) FILTER (WHERE status = 'unmatched') AS unmatched,
       count(*) FILTER (WHERE status = 'overridden') AS overridden
FROM {emissions}
WHERE {where}
GROUP BY ALL
