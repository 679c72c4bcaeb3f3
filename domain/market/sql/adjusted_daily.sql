-- Back-adjusted prices. A stock without a factor keeps its row, with NULL prices: never a guess.
-- Relations: daily, factors
SELECT
    d.trade_date,
    d.ts_code,
    f.adj_factor,
    d.open * f.adj_factor AS hfq_open,
    d.high * f.adj_factor AS hfq_high,
    d.low * f.adj_factor AS hfq_low,
    d.close * f.adj_factor AS hfq_close,
    d.pre_close * f.adj_factor AS hfq_pre_close,
    d.vol,
    d.amount
FROM daily AS d
LEFT JOIN factors AS f USING (trade_date, ts_code)
ORDER BY d.trade_date, d.ts_code
