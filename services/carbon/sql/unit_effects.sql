-- Units whose total, with all units below them, differs between two reports of the same results.
WITH old AS (SELECT unit_id, CAST(sum(total_mg) AS BIGINT) AS mg FROM before GROUP BY ALL),
new AS (SELECT unit_id, CAST(sum(total_mg) AS BIGINT) AS mg FROM after GROUP BY ALL)
SELECT unit_id, coalesce(old.mg, 0) AS before_mg, coalesce(new.mg, 0) AS after_mg
FROM old FULL JOIN new USING (unit_id)
WHERE before_mg <> after_mg
ORDER BY abs(after_mg - before_mg) DESC, unit_id
