"""Carbon's inbox: files become uploads once, and older ones supersede nothing newer."""

from __future__ import annotations

import json
from pathlib import Path

import dagster as dg
import pytest

from assets.policies.tags import DISPATCH
from domain.carbon.jobs import FILE_INGEST, INBOX_FILES
from domain.shared.error import TransientResourceError
from orchestration.build import build_definitions
from orchestration.cli.runner import runner
from orchestration.environments import load_settings
from orchestration.instance import open_instance
from sensors.carbon.inbox import inbox_sensor
from services.carbon.upload import upload
from services.carbon.uploaded_file import File
from services.inbox import poll
from tests.integration.services.carbon.carbon_app import FACTORS, PAPER, YEAR, CarbonApp
from tests.integration.services.carbon.inboxes import CarbonInbox
from tests.integration.services.market.market_app import quiet
from tests.unit.sensors.test_work_sweep import at_work_job

DATA = f"data/paper/{YEAR}"
OLDER, NEWER = PAPER.replace("100", "150"), PAPER.replace("100", "200")
HEAD, *ROWS = FACTORS.splitlines(keepends=True)


@pytest.fixture
def inbox(app: CarbonApp) -> CarbonInbox:
    return CarbonInbox(app.carbon, app.home / "inbox")


def newest(app: CarbonApp) -> str:
    return app.carbon.store.uploads.find(accepted=True)[0].name


def by_hand(app: CarbonApp, name: str, text: str) -> None:
    file = File("data", name, text.encode(), "ada", year=int(YEAR), data_entry_type="paper")
    upload(app.carbon, file)


def factors_of(*types: str) -> str:
    return HEAD + "".join(row for row in ROWS if row.startswith(types))


# A file and its folders


def test_import__folders_name_type_and_year__is_calculated(app: CarbonApp, inbox: CarbonInbox) -> None:
    before = app.milligrams()
    inbox.put(f"{DATA}/more.csv", NEWER)
    assert inbox.find_and_run() == {"more.csv": "imported"}
    assert inbox.report(f"taken/{DATA}/more.csv").startswith(f"1 rows of {YEAR} taken; upload ")
    assert app.settle() == []
    assert app.milligrams() == before + 70_000_000


def test_import__folder_names_an_institution__is_theirs(app: CarbonApp, inbox: CarbonInbox) -> None:
    inbox.put(f"data/institution=ethz/paper/{YEAR}/theirs.csv", NEWER)
    assert inbox.find_and_run() == {"theirs.csv": "imported"}
    assert app.carbon.store.uploads.find()[0].institution == "ethz"
    inbox.put(f"data/institution=/paper/{YEAR}/nobodys.csv", PAPER)
    assert inbox.find_and_run() == {"nobodys.csv": "bad_name"}


# Once, and in order


def test_import__the_newest_file_again__is_already_known(app: CarbonApp, inbox: CarbonInbox) -> None:
    by_hand(app, "now.csv", NEWER)
    inbox.put(f"{DATA}/again.csv", NEWER, age=3600.0)
    assert inbox.find_and_run() == {"again.csv": "already_known"}
    assert newest(app) == "now.csv"


def test_import__imported_but_not_moved__is_not_uploaded_again(app: CarbonApp, inbox: CarbonInbox) -> None:
    inbox.put(f"{DATA}/old.csv", OLDER)
    stone = inbox.put("taken/data/paper", "no folder")
    with pytest.raises(TransientResourceError, match="cannot be read or moved"):
        inbox.find_and_run()
    by_hand(app, "fix.csv", NEWER)
    stone.unlink()
    [row] = app.carbon.ledger.find(FILE_INGEST)
    app.carbon.ledger.retry(row.id)
    assert inbox.find_and_run() == {"old.csv": "already_known"}
    assert "newer uploads supersede it" in inbox.report(f"taken/{DATA}/old.csv")
    assert newest(app) == "fix.csv"


def test_import__two_files_of_one_scope__the_last_written_counts(app: CarbonApp, inbox: CarbonInbox) -> None:
    inbox.put(f"{DATA}/a-final.csv", NEWER, age=0.1)
    inbox.put(f"{DATA}/b-draft.csv", OLDER, age=0.2)
    assert inbox.find_and_run() == {"b-draft.csv": "imported", "a-final.csv": "imported"}
    assert newest(app) == "a-final.csv"


def test_import__written_before_the_newest_upload__is_refused_until_touched(
    app: CarbonApp, inbox: CarbonInbox
) -> None:
    by_hand(app, "fix.csv", NEWER)
    inbox.put(f"{DATA}/old.csv", OLDER, age=3600.0)
    assert inbox.find_and_run() == {"old.csv": "older_than_newest"}
    assert "fix.csv" in inbox.report(f"refused/{DATA}/old.csv")
    assert newest(app) == "fix.csv"
    inbox.put(f"{DATA}/old.csv", OLDER)
    assert inbox.find_and_run() == {"old.csv": "imported"}


@pytest.mark.parametrize(
    ("types", "outcome"), [(("electricity",), "imported"), (("electricity", "paper"), "older_than_newest")]
)
def test_import__older_factors__are_refused_if_a_newer_file_has_one_of_their_types(
    inbox: CarbonInbox, app: CarbonApp, types: tuple[str, ...], outcome: str
) -> None:
    assert app.upload("factors", FACTORS).code == 0
    uploads = [one for one in inbox.carbon.store.uploads.find() if one.kind == "factors"]
    inbox.put(f"factors/{YEAR}/b.csv", factors_of("paper", "train").replace("0.7", "0.9"))
    assert inbox.find_and_run() == {"b.csv": "imported"}
    age = (inbox.start - uploads[0].moment).total_seconds() - 0.001
    inbox.put(f"factors/{YEAR}/a.csv", factors_of(*types).replace("0.12", "0.13"), age=age)
    assert inbox.find_and_run() == {"a.csv": outcome}


# As the daemon and `heal` do it


def test_heal__files_in_the_inbox__are_imported_and_refused(
    app: CarbonApp, inbox: CarbonInbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.inbox.PASS_SECONDS", 0.3)
    before = app.milligrams()
    inbox.put(f"{DATA}/more.csv", NEWER)
    inbox.put("units/bad.csv", "rubbish")
    healed = app.run("heal")
    assert healed.code == 1, "a person has to correct the refused file"
    assert "inbox/refused/units/bad.csv" in healed.err
    assert "files in the inbox: 2;" in healed.err
    assert app.milligrams() == before + 70_000_000
    assert (inbox.folder / "taken" / DATA / "more.csv").is_file()
    assert "no column" in inbox.report("refused/units/bad.csv")


def test_heal__dispatched_to_a_run_that_died__is_imported(
    app: CarbonApp, inbox: CarbonInbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.inbox.PASS_SECONDS", 0.3)
    inbox.put(f"{DATA}/old.csv", OLDER, age=0.5)
    [start] = poll(inbox.inbox, app.carbon.ledger, {}).dispatches
    with open_instance(load_settings()) as instance:
        failed = dg.DagsterRunStatus.FAILURE
        instance.create_run_for_job(at_work_job, tags={DISPATCH: start.id}, status=failed)
    inbox.put(f"{DATA}/fix.csv", NEWER)
    done = app.run("heal")
    assert done.code == 0, done.err
    assert newest(app) == "fix.csv"


def test_sensor__complete_file__starts_a_run_that_imports_it(app: CarbonApp, inbox: CarbonInbox) -> None:
    path: Path = inbox.put(f"{DATA}/more.csv", NEWER)
    stamps = poll(inbox.inbox, app.carbon.ledger, {}).stamps
    definitions = build_definitions(load_settings())
    with runner(load_settings()) as run:
        with (
            quiet(),
            dg.build_sensor_context(
                run.instance,
                json.dumps(dict(stamps)),
                repository_def=definitions.get_repository_def(),
                resources=dict(definitions.resources or {}),
            ) as context,
        ):
            tick = inbox_sensor.evaluate_tick(context)
        [request] = tick.run_requests or []
        assert request.run_key is not None
        end = run.run([INBOX_FILES], namespace="carbon", tags=dict(request.tags))
    assert end.success, end.errors
    assert not path.exists()
    assert (inbox.folder / "taken" / DATA / "more.csv").is_file()
