"""How assets are cut into partitions. Whether a weekday is a trading day is data, never a definition."""

from datetime import date

import dagster as dg

from domain.shared.years import YEARS as ALL_YEARS

SHANGHAI = "Asia/Shanghai"
WEEKENDS = "0 0 * * 0,6"


def weekdays(start: date) -> dg.DailyPartitionsDefinition:
    """Every weekday from `start` to today in Shanghai. `end_offset` makes today a partition at once."""
    return dg.DailyPartitionsDefinition(
        start_date=start.isoformat(), timezone=SHANGHAI, exclusions=[WEEKENDS], end_offset=1
    )


YEARS = dg.StaticPartitionsDefinition([str(year) for year in ALL_YEARS])
"""A yearly time window would lack the current year, and the next."""
