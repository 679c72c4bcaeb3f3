-- Stock by stock: who should have a row and has none, who has one and should not.
-- Relations: days(trade_date), stocks, suspensions, present(table_name, trade_date, ts_code),
--            judged(table_name, reference) with reference listed or listed_less_suspended
WITH whole_day AS (
    SELECT DISTINCT trade_date, ts_code
    FROM suspensions
    WHERE suspend_type = 'S' AND suspend_timing IS NULL
),
wanted AS (
    SELECT j.table_name, d.trade_date, s.ts_code
    FROM days AS d
    JOIN stocks AS s
        ON s.list_date <= d.trade_date AND (s.delist_date IS NULL OR s.delist_date > d.trade_date)
    CROSS JOIN judged AS j
    LEFT JOIN whole_day AS w ON w.trade_date = d.trade_date AND w.ts_code = s.ts_code
    WHERE j.reference = 'listed' OR w.ts_code IS NULL
)
SELECT
    table_name,
    trade_date,
    count(*) FILTER (WHERE p.ts_code IS NULL) AS missing_stocks,
    count(*) FILTER (WHERE w.ts_code IS NULL) AS unexpected_stocks,
    array_to_string(
        list_slice(list_sort(list(w.ts_code) FILTER (WHERE p.ts_code IS NULL)), 1, 10), ' '
    ) AS missing_sample
FROM wanted AS w
FULL JOIN (SELECT DISTINCT table_name, trade_date, ts_code FROM present) AS p
    USING (table_name, trade_date, ts_code)
GROUP BY table_name, trade_date
