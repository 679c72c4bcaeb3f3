"""Whether this process lives, and whether it can work."""

from __future__ import annotations

from contextlib import closing
from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel

from orchestration.services import open_lake, open_ledger
from orchestration.settings import Settings


class Alive(BaseModel):
    """This process lives."""

    status: Literal["alive"] = "alive"


class Ready(BaseModel):
    """The ledger and the lake can be reached, and the ledger's schema is this program's."""

    status: Literal["ready"] = "ready"


def routes(settings: Settings) -> APIRouter:
    router = APIRouter(tags=["health"])

    @router.get("/healthz", summary="Whether this process lives")
    async def healthz() -> Alive:
        return Alive()

    @router.get("/readyz", summary="Whether it can answer: ledger and lake")
    def readyz() -> Ready:
        with closing(open_ledger(settings)) as ledger:
            ledger.running()
        lake = open_lake(settings)
        lake.partitions(next(iter(lake.tables)))
        return Ready()

    return router
