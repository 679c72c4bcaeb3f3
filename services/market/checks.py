"""What `perennial doctor` examines of the market: whether the source answers."""

from __future__ import annotations

from domain.market.trading import shanghai
from domain.shared.error import PerennialError, TransientResourceError
from services.market.service import MarketService


def check_source(market: MarketService) -> str:
    """One small call, which also proves the token."""
    from resources.tushare.request import Request

    year = shanghai(market.clock()).year
    schema = market.catalogue.calendar.source_schema
    params = {"exchange": "SSE", "start_date": f"{year}0101", "end_date": f"{year}0131"}
    try:
        rows = market.source.fetch(Request("trade_cal", params, schema=schema)).num_rows
    except TransientResourceError as error:
        remedy = error.remedy or "see that TUSHARE_URL is right and the source runs"
        raise PerennialError(error.message, remedy=remedy) from error
    return f"the source answers ({rows} calendar days of January {year})"


CHECKS = {"source": check_source}
