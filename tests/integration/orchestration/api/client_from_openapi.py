"""A client of the HTTP API, written with nothing in view but `/openapi.json`.

It uploads a university's files, follows what becomes of them by their streams, and reads the report; then it
does the same with newer factors.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx


class Perennial:
    def __init__(self, address: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self.http = httpx.Client(base_url=address, headers=headers, timeout=60)

    def upload(self, kind: str, path: Path, year: int, **more: str) -> str:
        """The id of the pipeline of a file."""
        query = {"kind": kind, "year": str(year), "name": path.name, **more}
        csv = {"Content-Type": "text/csv"}
        answer = self.http.post("/carbon/uploads", params=query, content=path.read_bytes(), headers=csv)
        if answer.status_code != 202:
            raise SystemExit(f"{path.name}: {answer.json()['detail']}; {answer.json()['remedy']}")
        return str(answer.json()["pipeline_id"])

    def events(self, pipeline: str) -> Iterator[tuple[str, dict[str, Any]]]:
        with self.http.stream("GET", f"/pipelines/{pipeline}/stream") as answer:
            answer.raise_for_status()
            event: dict[str, str] = {}
            for line in answer.iter_lines():
                name, _, value = line.partition(": ")
                if not line and "data" in event:
                    yield event.pop("event", "message"), json.loads(event.pop("data"))
                elif name:  # a line that begins with a colon is a comment
                    event[name] = value

    def report(self, year: int, pipeline: str) -> dict[str, Any]:
        """The report of a year once it has the numbers of a pipeline."""
        status = [data["status"] for event, data in self.events(pipeline) if event == "end"]
        if status != ["SUCCESS"]:
            raise SystemExit(f"{pipeline} ended {status}: {self.http.get(f'/pipelines/{pipeline}').json()}")
        return dict(self.http.get(f"/carbon/reports/{year}", headers={"Accept": "application/json"}).json())


if __name__ == "__main__":
    api, folder, year = Perennial(sys.argv[1], sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
    for kind in ("units", "factors"):
        last = api.upload(kind, folder / f"{kind}-{year}.csv", year)
    for one in api.http.get("/carbon/types").json()["types"]:
        last = api.upload("data", folder / f"{one['name']}-{year}.csv", year, type=one["name"])
    before = api.report(year, last)
    after = api.report(year, api.upload("factors", folder / f"factors-{year}-revised.csv", year))
    print(json.dumps({"before": before["total_mg"], "after": after["total_mg"], "notes": after["notes"]}))
