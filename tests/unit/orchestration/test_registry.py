"""The registry: nothing shared names a domain, and a domain that is off is not imported."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from domain.shared.error import InvalidInput
from orchestration.environments import load_settings
from orchestration.registry import MODULES, enabled, find_domain, require_domain
from orchestration.settings import PROJECT_ROOT

_PROGRAM = """
import json, sys
sys.argv = ["perennial", *json.loads(sys.argv[1])]
if sys.argv[1:]:
    from orchestration.cli.main import main
    try:
        main()
    except SystemExit:
        pass
else:
    import orchestration.definitions
print()
print(json.dumps(sorted(sys.modules)))
"""


def imported(tmp_path: Path, domain: str, *command: str) -> list[str]:
    """What a command, or without one the code location, imports where only this domain is on."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, json.dumps(command)],
        cwd=PROJECT_ROOT,
        env={"PERENNIAL_DOMAINS": domain, "PERENNIAL_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    modules: list[str] = json.loads(done.stdout.splitlines()[-1])
    return modules


def of_domain(domain: str, modules: list[str]) -> list[str]:
    return [name for name in modules if domain in re.split(r"[._]", name) and not name.startswith("sandbox.")]


@pytest.mark.parametrize(
    ("on", "off", "command"),
    [
        ("market", "carbon", ()),
        ("carbon", "market", ()),
        ("market", "carbon", ("sql", "SELECT 1")),
        ("carbon", "market", ("status",)),
    ],
)
def test_import__domain_is_off__nothing_of_it_is_loaded(
    tmp_path: Path, on: str, off: str, command: tuple[str, ...]
):
    modules = imported(tmp_path, on, *command)
    assert of_domain(off, modules) == []
    assert of_domain(on, modules)
    assert ("dagster" in modules) == (command == ())


def test_find_domain__every_name__is_the_domain_of_that_name():
    assert [find_domain(name).name for name in MODULES] == list(MODULES)


def test_require_domain__off__is_refused():
    settings = load_settings({"PERENNIAL_DOMAINS": "carbon"})
    assert [domain.name for domain in enabled(settings)] == ["carbon"]
    with pytest.raises(InvalidInput) as caught:
        require_domain(settings, "market")
    assert caught.value.reason_code == "domain_off"


OF_ONE_DOMAIN = re.compile(
    r"^((orchestration/(domains|cli|api)|sensors|services|assets)/"
    rf"({'|'.join(MODULES)})(_\w+\.py|\.py|/)|resources/(tushare|scraping|sandbox|database/migrations)/|orchestration/registry\.py$)"
)
"""What may name a domain: its folders, its modules of the command and the HTTP interface, migrations."""
SHARED = ("orchestration", "sensors", "services", "resources", "assets")


def test_shared_modules__domain_named__in_none():
    word = re.compile(rf"\b({'|'.join(MODULES)}|tushare)\b", re.IGNORECASE)
    found = {
        str(file.relative_to(PROJECT_ROOT))
        for package in SHARED
        for file in (PROJECT_ROOT / package).rglob("*.py")
        if word.search(file.read_text(encoding="utf-8"))
    }
    shared = {name for name in found if not OF_ONE_DOMAIN.match(name)}
    assert shared == set()


@pytest.mark.parametrize("name", MODULES)
def test_domain__parts_named_by_path__exist(name: str):
    domain = find_domain(name)
    paths = [part.path for part in vars(domain).values() if hasattr(part, "path")]
    paths += [page.path for page in domain.pages.values() if hasattr(page, "path")]
    assert paths
    for path in paths:
        module, _, attribute = path.partition(":")
        assert hasattr(import_module(module), attribute), path
