"""The command knows the ledger's SQL tables by name, so that other queries need not open the ledger."""

from __future__ import annotations

from orchestration.cli.looking import LEDGER_VIEWS
from resources.ledger.views import TABLES


def test_the_command_offers_every_table_the_ledger_shows():
    assert set(LEDGER_VIEWS) == set(TABLES)
