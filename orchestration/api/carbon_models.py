"""The answers of the carbon routes about uploads."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from services.carbon.pipelines import UploadPipeline
from services.carbon.requests import Requested as RequestedWork
from services.carbon.upload import Receipt
from services.carbon.upload_store import Upload

PIPELINE = "01K9Z8Q0V3M6T1W4X7Y2ABCDEF"


class Requested(BaseModel):
    """What a call started."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"job_id": 9, "pipeline_id": PIPELINE, "jobs": [9], "known_already": False}
        }
    )

    job_id: int | None = Field(
        description="The first of `jobs`, for `GET /sync/jobs/{id}` and its stream. Null if there is none "
        "yet (the lake cannot be read now) or no more (a newer file came, or long done): follow the pipeline."
    )
    pipeline_id: str = Field(description="All that follows, for `GET /pipelines/{id}` and its stream.")
    jobs: list[int] = Field(description="The work items that it begins with.")
    known_already: bool = Field(
        description="The same was requested before: the answer names that, and nothing was added."
    )


class FileProblem(BaseModel):
    """What is wrong with a cell of a file."""

    line: int = Field(description="0: the file as a whole.")
    column: str
    value: str
    code: str
    reason: str


class Replaced(BaseModel):
    """An upload that counts no more in a year."""

    upload: int
    file: str
    year: int
    rows_before: int
    rows_after: int


ACCEPTED: JsonDict = {
    "job_id": 7,
    "pipeline_id": PIPELINE,
    "jobs": [7],
    "upload_id": 3,
    "file": "train.csv",
    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "kind": "data",
    "type": "train",
    "years": [2025],
    "rows": 120,
    "taken": 120,
    "known_already": False,
    "superseded": False,
    "problem_count": 0,
    "problems": [],
    "warnings": [],
    "replaced": [],
    "fallbacks": [],
    "notes": [],
}


class AcceptedFile(Requested):
    """A file that was accepted, and the work that imports it."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": ACCEPTED,
        }
    )

    upload_id: int = Field(description="For `GET /carbon/uploads/{id}`.")
    file: str
    sha256: str
    kind: str
    type: str | None
    years: list[int]
    rows: int
    taken: int = Field(description="How many of its rows are good.")
    superseded: bool = Field(description="It is in, and newer uploads supersede it.")
    problem_count: int
    problems: list[FileProblem] = Field(description="The first 100.")
    warnings: list[str]
    replaced: list[Replaced] = Field(description="The uploads whose place it takes.")
    fallbacks: list[dict[str, Any]] = Field(description="Rows that are counted with a fallback factor.")
    notes: list[str]


class Foreseen(BaseModel):
    """What a file would change. Nothing was changed."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "rows": 5,
                "factors": [
                    {
                        "year": 2025,
                        "data_entry_type": "train",
                        "emission_type": "train",
                        "classification": '{"country":"CH"}',
                        "before": 0.008,
                        "before_unit": "kg/km",
                        "after": 0.009,
                        "after_unit": "kg/km",
                        "change": "changed",
                    }
                ],
                "effects": [
                    {
                        "year": 2025,
                        "data_entry_type": "train",
                        "before_tonnes": 0.031,
                        "after_tonnes": 0.033,
                        "percent": 6.45,
                    }
                ],
                "units": [],
                "replaced": [],
                "notes": [],
            }
        }
    )

    rows: int
    factors: list[dict[str, Any]] = Field(
        description="Of a file of factors: those that would be new, changed or stale."
    )
    effects: list[dict[str, Any]] = Field(description="The tonnes of each type without the file and with it.")
    units: list[dict[str, Any]] = Field(description="Of a file of units: the largest change first.")
    replaced: list[Replaced]
    notes: list[str]


_ROW: JsonDict = {
    "upload_id": 3,
    "pipeline_id": PIPELINE,
    "kind": "data",
    "type": "train",
    "institution": "main",
    "source": "csv",
    "file": "train.csv",
    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "bytes": 4096,
    "rows": 120,
    "taken": 120,
    "years": [2025],
    "accepted": True,
    "problem_count": 0,
    "uploaded_by": "api: anna",
    "uploaded_at": "2026-11-18T12:00:00Z",
}


class UploadRow(BaseModel):
    """An upload."""

    model_config = ConfigDict(json_schema_extra={"example": _ROW})

    upload_id: int
    pipeline_id: str
    kind: str
    type: str | None
    institution: str
    source: str = Field(description="`csv`: a file. Else the application that it was read from.")
    file: str
    sha256: str
    bytes: int
    rows: int
    taken: int
    years: list[int]
    accepted: bool
    problem_count: int
    uploaded_by: str
    uploaded_at: datetime


class UploadPage(BaseModel):
    """Some uploads, newest first."""

    model_config = ConfigDict(json_schema_extra={"example": {"total": 1, "items": [_ROW]}})

    total: int = Field(description="How many there are like that.")
    items: list[UploadRow]


_BECAME: JsonDict = {
    "status": "SUCCESS",
    "phases": {"data": "SUCCESS", "emissions": "SUCCESS", "aggregation": "SUCCESS"},
    "failure": "",
    "jobs": [7, 8, 9, 10],
    "problems": [],
    "warnings": [],
}


class UploadStory(UploadRow):
    """An upload with its problems, and what became of it."""

    model_config = ConfigDict(json_schema_extra={"example": _ROW | _BECAME})

    status: str = Field(description="NOT_STARTED, RUNNING, SUCCESS, PARTIAL or FAILED.")
    phases: dict[str, str] = Field(description="The status of each phase that has begun.")
    failure: str = Field(description="Why its numbers are not in the report; empty if they are.")
    jobs: list[int] = Field(description="All work items of its pipeline.")
    problems: list[FileProblem] = Field(description="The first 100.")
    warnings: list[str]


def requested(response: Response, found: RequestedWork) -> Requested:
    response.headers["Location"] = f"/pipelines/{found.pipeline_id}"
    jobs = [row.id for row in found.jobs]
    return Requested(
        job_id=next(iter(jobs), None),
        pipeline_id=found.pipeline_id,
        jobs=jobs,
        known_already=found.known,
    )


def accepted(response: Response, receipt: Receipt) -> AcceptedFile:
    response.headers["Location"] = f"/pipelines/{receipt.upload.pipeline_id}"
    said = receipt.as_json()
    ids = {
        "job_id": next(iter(receipt.jobs), None),
        "pipeline_id": said["pipeline"],
        "upload_id": said["upload"],
    }
    return AcceptedFile.model_validate(said | ids)


def upload_row(one: Upload) -> UploadRow:
    return UploadRow.model_validate(_row(one))


def upload_story(found: UploadPipeline) -> UploadStory:
    phases = {name: span.status for name, span in found.state.phases.items() if span.started is not None}
    return UploadStory.model_validate(
        _row(found.upload)
        | {"status": found.state.status, "phases": phases, "failure": found.failure}
        | {"jobs": [row.id for row in found.work]}
    )


def _row(one: Upload) -> dict[str, Any]:
    words = {"upload_id": one.id, "type": one.topic or None, "file": one.name}
    return asdict(one) | words
