"""Concurrency pools. Pools only throttle: the lake's lock per table is what makes writes correct.

The limits live in the instance; `perennial pools apply` sets them and `perennial doctor` tells drift.
"""

TUSHARE = "tushare"

LIMITS = {TUSHARE: 3}
