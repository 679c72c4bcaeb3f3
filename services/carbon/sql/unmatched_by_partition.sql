SELECT concat(data_entry_type, '|', year) AS partition, count(*) AS unmatched
FROM carbon.data_entry_emissions
WHERE status = 'unmatched' AND {where}
GROUP BY ALL
