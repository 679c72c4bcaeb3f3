-- How many rows of a source were published on which day, of the last days that have any.
SELECT strftime(published_at, '%Y-%m-%d') AS day, count(*) AS number
FROM {table}
WHERE source = $source AND published_at IS NOT NULL
GROUP BY day
ORDER BY day DESC
LIMIT 40
