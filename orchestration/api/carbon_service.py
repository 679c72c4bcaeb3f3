"""What the carbon routes share: the service of one call, the words of its parameters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Annotated

from fastapi import Path, Query

from domain.carbon.catalogue import catalogue
from domain.shared.names import LONGEST
from domain.shared.years import YEARS
from orchestration.domains.carbon import open_carbon
from orchestration.settings import Settings
from services.carbon.service import CarbonService

TYPES = sorted(catalogue().types)
PathYear = Annotated[int, Path(ge=YEARS[0], le=YEARS[-1], description="The year.", examples=[2025])]
QueryYear = Annotated[int | None, Query(ge=YEARS[0], le=YEARS[-1], examples=[2025])]
Name = Annotated[str | None, Query(min_length=1, max_length=LONGEST)]


@contextmanager
def opened(settings: Settings, *, write: bool = False) -> Iterator[CarbonService]:
    carbon = open_carbon(settings, write=write)
    with closing(carbon.ledger):
        yield carbon
