SELECT unit_id, count(*) AS entries
FROM entries
GROUP BY 1
ORDER BY entries DESC, unit_id
LIMIT 20
