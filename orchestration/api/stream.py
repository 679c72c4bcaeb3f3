"""Streams of server-sent events: a pipeline or a work item as it changes, until it has ended.

`state` events carry the answer of `GET /pipelines/{id}` without members, or a work item without its history;
`end` carries the last one. `problem` says that the state cannot be read now; the stream goes on.

No postponed annotations: FastAPI could not resolve the dependencies, which are local.
"""

import time
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel

from domain.shared.error import InvalidInput, PerennialError
from domain.shared.hashing import digest
from domain.shared.work import FINISHED
from orchestration.api.frame import cleaner
from orchestration.api.pipelines import Pipeline, PipelineId, as_pipeline, unknown
from orchestration.api.problem import answer_to
from orchestration.api.watching import Hub, Snapshot, Topic, Watch
from orchestration.api.work import WorkId, WorkItem, as_item
from orchestration.pipelines import PipelineReader
from orchestration.settings import Settings

UNSETTLED_SECONDS = 3
"""How long the view of a domain holds that expects work which the ledger does not have yet."""
LATER_MILLISECONDS = 60_000
"""When a client connects again that does not close its stream at its end."""

LastId = Annotated[
    str | None,
    Header(alias="Last-Event-ID", description="The id of the last event: its state is not sent again."),
]


class LedgerReader:
    """Reads pipelines and work items for the hub."""

    def __init__(self, settings: Settings) -> None:
        self._pipelines = PipelineReader(settings)
        self._clean = cleaner(settings)

    def read(self, held: Mapping[Topic, Snapshot | None]) -> dict[Topic, Snapshot | None]:
        return {**dict(self._read_pipelines(held)), **dict(self._read_jobs(held))}

    def problem(self, error: PerennialError) -> Snapshot:
        answer = answer_to(error, self._clean)
        return Snapshot("problem", None, bytes(answer.body).decode() if answer else "", stamp=error)

    def close(self) -> None:
        self._pipelines.close()

    def _read_pipelines(
        self, held: Mapping[Topic, Snapshot | None]
    ) -> Iterator[tuple[Topic, Snapshot | None]]:
        ids = [name for what, name in held if what == "pipeline"]
        if not ids:
            return
        now = int(time.monotonic() // UNSETTLED_SECONDS)
        counts = self._pipelines.counts(ids)
        stamps = {name: _stamp(held["pipeline", name]) for name in ids}
        changed = [name for name in ids if stamps[name] not in ((counts[name], None), (counts[name], now))]
        states = self._pipelines.states(changed, counts) if changed else {}
        for name in changed:
            state = states.get(name)
            if state is None:
                yield ("pipeline", name), None
                continue
            settled = state.ended or any(one.status not in FINISHED for one in counts[name])
            stamp = (counts[name], None if settled else now)
            yield ("pipeline", name), _snapshot(as_pipeline(state), ended=state.ended, stamp=stamp)

    def _read_jobs(self, held: Mapping[Topic, Snapshot | None]) -> Iterator[tuple[Topic, Snapshot | None]]:
        topics = {int(name): (what, name) for what, name in held if what == "job"}
        rows = self._pipelines.ledger.get_all(topics) if topics else {}
        for number, topic in topics.items():
            row = rows.get(number)
            if row is None:
                yield topic, None
            elif _stamp(held[topic]) != (row.status, row.fence, row.updated_at):
                stamp = (row.status, row.fence, row.updated_at)
                yield topic, _snapshot(as_item(row), ended=row.status in FINISHED, stamp=stamp)


def _stamp(snapshot: Snapshot | None) -> Any:
    return snapshot.stamp if snapshot else None


def _snapshot(answer: BaseModel, *, ended: bool, stamp: Any) -> Snapshot:
    data = answer.model_dump_json()
    event: Literal["state", "end"] = "end" if ended else "state"
    return Snapshot(event, digest(data), data, stamp)


def open_hub(settings: Settings) -> Hub:
    return Hub(lambda: LedgerReader(settings), settings.api_streams)


def routes(hub: Hub) -> APIRouter:
    router = APIRouter(tags=["pipelines"])

    async def watched_pipeline(id: PipelineId) -> AsyncIterator[Watch]:  # noqa: A002 - its name in the path
        async with hub.watching(("pipeline", id)) as watch:
            _require(await watch.first(), unknown(id))
            yield watch

    async def watched_job(id: WorkId) -> AsyncIterator[Watch]:  # noqa: A002
        async with hub.watching(("job", str(id))) as watch:
            error = InvalidInput(f"there is no work {id}", reason_code="unknown_work", remedy="see GET /work")
            _require(await watch.first(), error)
            yield watch

    @router.get(
        "/pipelines/{id}/stream", summary="A pipeline as it changes", response_class=EventSourceResponse
    )
    async def pipeline(
        watch: Annotated[Watch, Depends(watched_pipeline)], last_id: LastId = None
    ) -> AsyncIterable[Pipeline]:
        """Server-sent events, each with an `id`: `state` at once and whenever something changed, and `end`
        with the last state, after which the stream closes. `problem` (a Problem) says that the state cannot
        be read now; the stream goes on. A slow client gets the newest state and not those between."""
        async for event in _events(watch, last_id):
            yield event  # type: ignore[misc]

    @router.get(
        "/sync/jobs/{id}/stream",
        summary="A work item as it changes",
        response_class=EventSourceResponse,
        tags=["work"],
    )
    async def job(
        watch: Annotated[Watch, Depends(watched_job)], last_id: LastId = None
    ) -> AsyncIterable[WorkItem]:
        """As of a pipeline. A work item that is queued again after its end goes on under an id of its own."""
        async for event in _events(watch, last_id):
            yield event  # type: ignore[misc]

    return router


def _require(snapshot: Snapshot | None, error: PerennialError) -> None:
    if snapshot is None:
        raise error
    if snapshot.event == "problem":
        raise snapshot.stamp


async def _events(watch: Watch, last_id: str | None) -> AsyncIterator[ServerSentEvent]:
    async for one in watch.follow(last_id):
        retry = LATER_MILLISECONDS if one.event == "end" else None
        yield ServerSentEvent(raw_data=one.data, event=one.event, id=one.id, retry=retry)
