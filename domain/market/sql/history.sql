-- Days of the far past whose rows are missing or too few.
-- Relations: days(trade_date), counted(table_name, trade_date, n), wanted(trade_date, listed, listed_less_suspended),
--            judged(table_name, reference), explained(table_name, trade_date)
SELECT
    d.trade_date,
    j.table_name,
    coalesce(c.n, 0) AS rows,
    CASE j.reference WHEN 'listed' THEN w.listed WHEN 'listed_less_suspended' THEN w.listed_less_suspended END AS expected,
    CASE WHEN c.n IS NULL THEN 'missing' ELSE 'incomplete' END AS reason
FROM days AS d
CROSS JOIN judged AS j
LEFT JOIN counted AS c ON c.trade_date = d.trade_date AND c.table_name = j.table_name
LEFT JOIN wanted AS w ON w.trade_date = d.trade_date
ANTI JOIN explained AS e ON e.trade_date = d.trade_date AND e.table_name = j.table_name
WHERE (c.n IS NULL AND coalesce(expected, 1) > 0) OR c.n < ? * expected
ORDER BY d.trade_date DESC, j.table_name
