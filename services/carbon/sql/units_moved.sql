-- Units that come to something else, with all below them, in one of two reports of the same results.
WITH was AS (SELECT unit_id, CAST(sum(total_mg) AS BIGINT) AS mg FROM before GROUP BY ALL),
will AS (SELECT unit_id, CAST(sum(total_mg) AS BIGINT) AS mg FROM after GROUP BY ALL)
SELECT unit_id, coalesce(was.mg, 0) AS before_mg, coalesce(will.mg, 0) AS after_mg
FROM was FULL JOIN will USING (unit_id)
WHERE before_mg <> after_mg
ORDER BY abs(after_mg - before_mg) DESC, unit_id
