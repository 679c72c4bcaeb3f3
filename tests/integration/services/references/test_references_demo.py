"""The demo's part about references: a sync, a free one, a source that fails and heals, a change, a story."""

from __future__ import annotations

from pathlib import Path

import pytest

from resources.sandbox.process import port_file
from sandbox.server import SandboxServer
from tests.command import said


@pytest.mark.parametrize("sources", ["sandbox", "none"])
def test_demo__references_alone__ends_healthy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sources: str
) -> None:
    monkeypatch.setenv("PERENNIAL_HOME", str(tmp_path))
    monkeypatch.setenv("PERENNIAL_DOMAINS", "references")
    monkeypatch.setenv("PERENNIAL_REFERENCES_SOURCES", sources)
    with SandboxServer() as sandbox:
        port_file(tmp_path).parent.mkdir()
        port_file(tmp_path).write_text(str(sandbox.port))
        ended = said("demo", "--json")
        assert sandbox.faults.in_force() == ()
    assert (ended.code, ended.json["healthy"]) == (0, True), ended.err
    shown = ended.json["references"]
    if sources == "none":
        assert shown["left_out"]
        return
    assert (shown["again"]["stored"], shown["again"]["changed"]) == (0, 0)
    assert shown["refused"] == "scrape_incomplete"
    changed = shown["changed"]
    assert changed["handoff_completed_count"] == changed["changed"] > 0
    rows = {row["source"]: row for row in shown["sources"]}
    assert rows["atlas"]["references"] == rows["atlas"]["documents"] > 100
    assert rows["herald"]["documents"] == 40


def test_sandbox_break__references__are_healed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERENNIAL_HOME", str(tmp_path))
    monkeypatch.setenv("PERENNIAL_DOMAINS", "references")
    with SandboxServer() as sandbox:
        port_file(tmp_path).parent.mkdir()
        port_file(tmp_path).write_text(str(sandbox.port))
        assert said("references", "heal").code == 0
        broken = said("sandbox", "break", "--drop-half", "herald")
        assert broken.code == 0, broken.err
        assert "perennial references heal" in broken.err
        assert said("references", "heal").code == 0
    counted = said("sql", "SELECT count(*) AS n FROM refs.references WHERE source = 'herald'", "--json")
    assert counted.json[0]["n"] == 40
