"""All domains at a glance: the tables of the lake and the kinds of work. A new domain is one line in each."""

from __future__ import annotations

from domain.carbon.jobs import ALL_KINDS as CARBON_KINDS
from domain.carbon.tables import TABLES as CARBON_TABLES
from domain.market.catalogue import catalogue as market_catalogue
from domain.market.plan import KINDS as MARKET_KINDS
from domain.market.tables import all_tables as market_tables
from domain.market.tables import views as market_views
from domain.shared.table import Table
from domain.shared.work import Kind


def tables() -> tuple[Table, ...]:
    return (*market_tables(market_catalogue()), *CARBON_TABLES)


def views() -> dict[str, str]:
    """SQL views over the lake's tables, by name."""
    return {**market_views()}


def kinds() -> tuple[Kind, ...]:
    return (*MARKET_KINDS, *CARBON_KINDS)
