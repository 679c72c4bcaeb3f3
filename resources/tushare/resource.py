"""The Tushare source as a Dagster resource: the real one, the sandbox, or any server that speaks it."""

from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg

from domain.shared.hashing import digest

if TYPE_CHECKING:
    from resources.ledger.client import Ledger
    from resources.tushare.client import TushareClient


class TushareResource(dg.ConfigurableResource):
    """`url` empty means: the official server, or, for the sandbox, one started on demand below `home`."""

    home: str
    source: str
    token: str
    url: str = ""
    points: int = 2000
    calls_per_minute: int = 0
    timeout_seconds: float = 30.0

    def fingerprint(self) -> str:
        """Changes when a person changed what could mend a permanent failure. Not reversible."""
        # What came straight from the environment is not trimmed yet, as the settings of a command are.
        url = "" if self.source == "sandbox" else self.url.strip().rstrip("/")
        return digest([self.source, url, self.token.strip(), self.points])

    def connect(self, ledger: "Ledger") -> "TushareClient":
        from resources.tushare.connect import connect

        return connect(
            home=Path(self.home),
            source=self.source,
            token=self.token,
            url=self.url,
            points=self.points,
            calls_per_minute=self.calls_per_minute,
            timeout_seconds=self.timeout_seconds,
            engine=ledger.engine,
        )
