"""Commands over the references, as a curator types them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.command import said
from tests.integration.services.references.references_app import ReferencesApp
from tests.integration.services.references.shelf import numbered


@pytest.fixture
def shelves(app: ReferencesApp, monkeypatch: pytest.MonkeyPatch) -> ReferencesApp:
    """Two sources that commands know, one with three references and one with a reference that fails."""
    for name, value in app.settings.environment().items():
        monkeypatch.setenv(name, value)
    app.shelves["east"].holds(numbered(range(3)))
    app.shelves["west"].holds({"bad": "wrong"})
    return app


@pytest.fixture
def healed(shelves: ReferencesApp) -> ReferencesApp:
    assert said("references", "heal").code == 1
    return shelves


def subjects(status: Any) -> dict[str, tuple[str, str]]:
    return {one["subject"]: (one["health"], one["reason_code"]) for one in status["findings"]}


def test_sync__of_a_source__stores_and_hands_over_and_ingests_nothing(shelves: ReferencesApp):
    answer = said("references", "sync", "east", "--json").json
    assert (answer["stored"], answer["handoff_completed_count"], answer["handoff_available"]) == (3, 3, True)
    assert "east: 0 new, 0 changed, 3 unchanged" in said("references", "sync", "east").out
    assert shelves.texts() == {}
    assert {row.status for row in shelves.jobs().values()} == {"queued"}


def test_sync__all_and_one_is_down__syncs_the_others_and_fails(shelves: ReferencesApp):
    shelves.shelves["west"].holds({}, fault="down")
    answer = said("references", "sync", "--all", "--json")
    assert answer.code == 1
    east, west = answer.json["syncs"]
    assert (east["stored"], west["reason_code"]) == (3, "scrape_down")


@pytest.mark.parametrize("words", [(), ("east", "--all"), ("nowhere",)])
@pytest.mark.usefixtures("shelves")
def test_sync__no_or_unknown_source__is_refused(words: tuple[str, ...]):
    refused = said("references", "sync", *words)
    assert refused.code == 2
    assert refused.err


def test_sync__full__reads_an_unchanged_source(shelves: ReferencesApp):
    shelves.shelves["east"].holds(numbered(range(3)), mark="1")
    for words, unchanged in (((), 0), ((), 0), (("--full",), 3)):
        answer = said("references", "sync", "east", "--json", *words).json
        assert answer["unchanged"] == unchanged
    assert "east: not modified since the last scrape" in said("references", "sync", "east").out
    shelves.shelves["east"].holds({}, mark="2")
    assert "not modified" not in said("references", "sync", "east", "--full").out


@pytest.mark.usefixtures("healed")
def test_handoffs__of_a_source_and_of_all__are_listed():
    page = said("references", "handoffs", "east", "--json").json
    assert (page["total"], {item["status"] for item in page["items"]}) == (3, {"completed"})
    everything = said("references", "handoffs", "--json").json
    assert {name: page["total"] for name, page in everything.items()} == {"east": 3, "west": 1}
    assert "east: 1 of 3" in said("references", "handoffs", "east", "--limit", "1").out
    run = page["items"][0]["scrape_run_ids"][0]
    assert said("references", "handoffs", "east", "--run", run, "--json").json["total"] == 3
    assert said("references", "handoffs", "east", "--status", "failed", "--json").json["total"] == 0
    assert said("references", "handoffs", "east", "--status", "lost").code == 2


@pytest.mark.usefixtures("healed")
def test_explain__reference__has_its_whole_story():
    story = said("references", "explain", "east:r1", "--json").json
    assert story["steps"][0]["what"] == "scrape"
    assert {"scrape", "hand-off", "job", "document"} <= {step["what"] for step in story["steps"]}
    shown = said("references", "explain", "west:bad")
    assert "no text to parse" in shown.out
    assert "it has no document yet" in shown.out
    assert said("references", "explain", "east:none").code == 2


@pytest.mark.usefixtures("healed")
def test_status_plan_and_check__a_job_failed__name_it_with_its_remedy():
    status = said("status", "--json").json
    assert subjects(status) == {"documents:west": ("broken", "unreadable")}
    [finding] = status["findings"]
    assert f"perennial work retry {finding['work_id']}" in finding["action"]
    plan = said("plan", "references", "--json").json
    assert (plan["due"], {v["state"] for v in plan["verdicts"]}) == (0, {"healthy"})
    assert "refs.documents" in said("plan").out
    checked = said("check", "references", "--json")
    assert checked.code == 1
    assert "unreadable" in checked.json["line"] or "no text to parse" in checked.json["line"]


def test_status__work_waits_to_be_pulled__is_healing(shelves: ReferencesApp):
    for source in shelves.sources:
        shelves.sync(source)
    assert subjects(said("status", "--json").json) == {
        "documents:east": ("healing", "work_waits"),
        "documents:west": ("healing", "work_waits"),
    }
    checked = said("check", "references")
    assert (checked.code, checked.out) == (0, "OK references: 2 sources, 2 pieces of work under way\n")


@pytest.mark.usefixtures("healed")
def test_doctor__sources__answer_or_are_named(shelves: ReferencesApp):
    parts = {part["part"]: part for part in said("doctor", "--json").json}
    assert parts["sources"]["result"] == "east, west answer"
    shelves.shelves["west"].holds({}, fault="down")
    parts = {part["part"]: part for part in said("doctor", "--json").json}
    assert not parts["sources"]["ok"]
    assert "west: the shelf does not answer" in parts["sources"]["result"]


@pytest.mark.usefixtures("healed")
def test_sql__references_and_the_history_of_handoffs__are_tables():
    query = (
        "SELECT r.reference_id, h.status, d.text FROM refs.references r JOIN refs.handoff h USING "
        "(reference_id, payload_hash) LEFT JOIN refs.documents d USING (reference_id) ORDER BY 1"
    )
    rows = said("sql", query, "--json").json
    assert [(row["reference_id"], row["text"]) for row in rows][-2:] == [
        ("east:r2", "text 2"),
        ("west:bad", None),
    ]
    [runs] = said("sql", "SELECT count(*) AS n, max(status) AS s FROM refs.scrape_run", "--json").json
    assert runs == {"n": 2, "s": "completed"}


@pytest.mark.usefixtures("healed")
def test_sql__history_of_handoffs_was_taken_away__says_so_with_the_remedy():
    said("migrate", "--down", "handoffs")
    refused = said("sql", "SELECT * FROM refs.handoff")
    assert refused.code == 2
    assert "`perennial migrate --up handoffs`" in refused.err
    assert said("sql", "SELECT count(*) FROM refs.documents").code == 0


@pytest.mark.usefixtures("healed")
def test_work__job_is_retried_by_a_person__is_done_by_the_next_heal(
    shelves: ReferencesApp, monkeypatch: pytest.MonkeyPatch
):
    [failed] = said("work", "list", "--status", "failed", "--json").json
    assert said("work", "list", "--key", "refs.documents:west", "--json").json == [failed]
    assert said("work", "retry", str(failed["id"])).code == 0
    monkeypatch.delenv("PERENNIAL_REFERENCES_INGEST")
    assert said("references", "heal").code == 0
    assert shelves.texts()["west:bad"] == "wrong"


def test_heal__ingest_function_cannot_be_imported__is_refused(
    shelves: ReferencesApp, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PERENNIAL_REFERENCES_INGEST", "nowhere.at:all")
    refused = said("references", "heal")
    assert (refused.code, "PERENNIAL_REFERENCES_INGEST" in refused.err) == (2, True)


def test_retention__old_scrape_runs__are_deleted_but_the_newest(shelves: ReferencesApp):
    for _ in range(3):
        shelves.sync("east")
    store, now = shelves.service.store, shelves.now
    newest = store.find_runs()[0].id
    assert store.delete_scrape_runs(now) == 0
    assert store.delete_scrape_runs(now + timedelta(seconds=1)) == 2
    assert [run.id for run in store.find_runs()] == [newest]
    met = store.handoffs.scrapes([1, 2, 3])
    assert {len(runs) for runs in met.values()} == {2}, "the first and the last that met a content"
    assert {runs[-1] for runs in met.values()} == {newest}
