SELECT concat(data_entry_type, '|', year) AS partition, count(*) FILTER (WHERE status = 'unmatched') AS unmatched,
       count(*) AS results
FROM carbon.data_entry_emissions
WHERE {where}
GROUP BY ALL
