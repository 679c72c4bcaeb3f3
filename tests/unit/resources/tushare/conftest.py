"""A ledger database for the pacer, and a clock that moves only when somebody sleeps."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from resources.database.engine import open_engine
from resources.database.migrate import migrate


@dataclass
class Time:
    """The machine clock and the sleeper in one."""

    now: datetime = datetime(2026, 11, 17, 10, 0, 0, tzinfo=UTC)
    naps: list[float] = field(default_factory=list)

    def clock(self) -> datetime:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def time_() -> Time:
    return Time()


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty ledger, made once and copied by every test."""
    path = tmp_path_factory.mktemp("ledger") / "ledger.db"
    engine = open_engine(f"sqlite:///{path}")
    migrate(engine)
    engine.dispose()
    return path


@pytest.fixture
def ledger_url(migrated: Path, tmp_path: Path) -> str:
    return f"sqlite:///{shutil.copy(migrated, tmp_path / 'ledger.db')}"


@pytest.fixture
def engine(ledger_url: str) -> Iterator[sa.Engine]:
    engine = open_engine(ledger_url)
    yield engine
    engine.dispose()
