"""The command knows the ledger's SQL tables by name, so that other queries need not open the ledger."""

from __future__ import annotations

from orchestration.cli.looking import LEDGER_VIEWS
from orchestration.registry import MODULES, find_domain
from resources.ledger.views import TABLES


def test_sql__every_table_the_ledger_shows__is_offered():
    of_domains = {view for name in MODULES for view in find_domain(name).ledger_views}
    assert {*LEDGER_VIEWS, *of_domains} == set(TABLES)
