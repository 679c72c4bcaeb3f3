"""The concurrency pool of calls to Tushare. It only throttles: the lock per table makes writes correct.

The limit lives in Dagster's instance: `perennial pools apply` sets it, `perennial doctor` reports drift.
"""

TUSHARE = "tushare"

LIMITS = {TUSHARE: 3}
