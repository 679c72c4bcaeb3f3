"""Uploads over HTTP: upload any file, list uploads, see what became of one."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response

from domain.shared.error import InvalidInput
from orchestration.api.carbon_files import WRITE, Content, QueryType, SaidOf, taken, takes_file
from orchestration.api.carbon_models import UploadPage, UploadStory, upload_row, upload_story
from orchestration.api.carbon_service import QueryYear, opened
from orchestration.settings import Settings
from services.carbon.pipelines import find_pipelines
from services.carbon.uploaded_file import FileKind


def routes(settings: Settings) -> APIRouter:
    router = APIRouter()

    @router.post("/carbon/uploads", summary="Upload a file", openapi_extra=takes_file("data"), **WRITE)
    def receive(
        response: Response,
        content: Content,
        said: SaidOf,
        kind: Annotated[FileKind, Query(description="What the file holds.")],
        data_entry_type: QueryType = None,
    ) -> Any:
        """The body is the file. It is checked whole before anything of it is imported; 422 lists its
        problems. The same file again is known, and the answer names the same upload, job and pipeline: a call
        whose answer was lost may be repeated. Units come first: data name them. Factors and data may come in
        any order."""
        return taken(settings, response, said, kind, content, data_entry_type)

    @router.get("/carbon/uploads", summary="Uploads, newest first")
    def uploads(
        kind: Annotated[FileKind | None, Query(description="Only uploads of this kind.")] = None,
        year: Annotated[QueryYear, Query(description="Only uploads of this year.")] = None,
        accepted: Annotated[bool | None, Query(description="Only accepted, or only refused ones.")] = None,
        limit: Annotated[int, Query(ge=1, le=1_000, description="How many at most.")] = 100,
        offset: Annotated[int, Query(ge=0, le=1 << 31, description="How many newer ones to leave out.")] = 0,
    ) -> UploadPage:
        with opened(settings) as carbon:
            total, found = carbon.store.uploads.page(
                kind=kind, year=year, accepted=accepted, limit=limit, offset=offset
            )
        return UploadPage(total=total, items=[upload_row(one) for one in found])

    @router.get("/carbon/uploads/{id}", summary="An upload: its problems, and what became of it")
    def one_upload(
        id: Annotated[int, Path(ge=1, le=1 << 62, description="Its `upload_id`.")],  # noqa: A002
    ) -> UploadStory:
        with opened(settings) as carbon:
            found = carbon.store.uploads.find(ids=[id])
            if not found:
                raise InvalidInput(
                    f"there is no upload {id}", reason_code="unknown_upload", remedy="see GET /carbon/uploads"
                )
            [pipeline] = find_pipelines(carbon, [found[0].pipeline_id])
        return upload_story(pipeline)

    return router
