"""The HTTP routes of the carbon domain."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from domain.shared.error import InvalidInput
from domain.shared.names import fault_of_name
from orchestration.api.limits import body_limit
from orchestration.domains.carbon import open_carbon
from orchestration.settings import Settings
from services.carbon.upload import upload
from services.carbon.uploaded_file import LARGEST, File


def routes(settings: Settings) -> APIRouter:
    router = APIRouter(tags=["carbon"])

    @router.post(
        "/carbon/uploads", status_code=201, summary="Import a file", openapi_extra=body_limit(LARGEST)
    )
    async def receive(
        request: Request,
        response: Response,
        *,
        kind: Literal["units", "factors", "data"],
        data_entry_type: Annotated[str | None, Query(alias="type")] = None,
        year: Annotated[int | None, Query(ge=0, le=9999)] = None,
        name: str = "",
        institution: str = "main",
        by: str = "",
        decimal: Literal["point", "comma"] | None = None,
        accept_valid: bool = False,
        replace: bool = False,
    ) -> dict[str, Any]:
        """The file is the body. 200 if it was imported before, 422 if it is refused."""
        file = File(
            kind=kind,
            name=name or f"{kind}.csv",
            content=await request.body(),
            by=_by(by),
            institution=institution or "main",
            year=year,
            data_entry_type=data_entry_type,
            mark=decimal,
        )
        status, receipt = await run_in_threadpool(_upload, settings, file, accept_valid, replace)
        response.status_code = status
        return receipt

    return router


def _by(name: str) -> str:
    """The name that the caller gave, marked as unverified."""
    if not name:
        return "api"
    if fault := fault_of_name(name):
        raise InvalidInput(f"by is {fault}", reason_code="bad_name", remedy="by=anna")
    return f"api: {name}"


def _upload(settings: Settings, file: File, valid: bool, may_shrink: bool) -> tuple[int, dict[str, Any]]:
    carbon = open_carbon(settings, write=True)
    with closing(carbon.ledger):
        receipt = upload(carbon, file, accept_valid=valid, may_shrink=may_shrink)
    return (200 if receipt.known else 201), receipt.as_json()
