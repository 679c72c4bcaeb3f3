-- Forward-adjusted prices, as of the newest factor the reader can see: they change for a stock's whole
-- history at each ex-date, so they are computed at read time and never stored.
WITH newest AS (
    SELECT ts_code, arg_max(adj_factor, trade_date) AS newest_factor
    FROM market.normalized_adj_factor
    GROUP BY ts_code
)
SELECT
    d.trade_date,
    d.ts_code,
    f.adj_factor / n.newest_factor AS qfq_factor,
    d.open * f.adj_factor / n.newest_factor AS qfq_open,
    d.high * f.adj_factor / n.newest_factor AS qfq_high,
    d.low * f.adj_factor / n.newest_factor AS qfq_low,
    d.close * f.adj_factor / n.newest_factor AS qfq_close,
    d.pre_close * f.adj_factor / n.newest_factor AS qfq_pre_close,
    d.vol,
    d.amount
FROM market.normalized_daily AS d
LEFT JOIN market.normalized_adj_factor AS f ON f.trade_date = d.trade_date AND f.ts_code = d.ts_code
LEFT JOIN newest AS n ON n.ts_code = d.ts_code
