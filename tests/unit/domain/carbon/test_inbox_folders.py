"""The folders around an inbox file name its year, its type and its institution, and nothing else."""

from __future__ import annotations

import pytest

from domain.carbon.inbox_folders import scope_of_folders
from domain.shared.error import InvalidInput

TYPES = ("paper", "plane")


def test_scope_of_folders__any_order__names_what_is_there() -> None:
    everything = {"year": "2025", "type": "paper", "institution": "ethz"}
    assert scope_of_folders(["institution=ethz", "paper", "2025"], TYPES) == everything
    assert scope_of_folders(["2025", "paper", "institution=ethz", "2025"], TYPES) == everything
    assert scope_of_folders([], TYPES) == {}


@pytest.mark.parametrize("folder", ["ethz", "Paper", "25", "२०२५", "Institution=ethz"])
def test_scope_of_folders__unknown_folder__is_refused(folder: str) -> None:
    with pytest.raises(InvalidInput, match=f"the folder '{folder}' is neither") as error:
        scope_of_folders(["paper", folder], TYPES)
    assert error.value.reason_code == "unknown_folder"


@pytest.mark.parametrize("folders", ["2024 2025", "paper plane", "institution=a institution=b"])
def test_scope_of_folders__contradiction__is_refused(folders: str) -> None:
    with pytest.raises(InvalidInput, match=r"two folders name its (year|type|institution)"):
        scope_of_folders(folders.split(), TYPES)
