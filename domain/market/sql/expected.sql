-- How many stocks were listed, and how many of them traded, on each day.
-- Relations: days(trade_date), stocks(ts_code, list_date, delist_date), suspensions(trade_date, ts_code, suspend_timing, suspend_type)
WITH whole_day AS (
    SELECT DISTINCT trade_date, ts_code
    FROM suspensions
    WHERE suspend_type = 'S' AND suspend_timing IS NULL
)
SELECT
    d.trade_date,
    count(s.ts_code) AS listed,
    count(s.ts_code) FILTER (WHERE w.ts_code IS NULL) AS listed_less_suspended
FROM days AS d
LEFT JOIN stocks AS s
    ON s.list_date <= d.trade_date AND (s.delist_date IS NULL OR s.delist_date > d.trade_date)
LEFT JOIN whole_day AS w ON w.trade_date = d.trade_date AND w.ts_code = s.ts_code
GROUP BY d.trade_date
ORDER BY d.trade_date
