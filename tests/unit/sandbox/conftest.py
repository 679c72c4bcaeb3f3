from __future__ import annotations

import pytest

from sandbox.exchange import Exchange
from sandbox.market.market import Market


@pytest.fixture(scope="session")
def exchange() -> Exchange:
    return Exchange()


@pytest.fixture(scope="session")
def market(exchange: Exchange) -> Market:
    return exchange.market
