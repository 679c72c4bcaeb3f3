"""The folders around a dropped file name its year, its type and its institution, and nothing else."""

from __future__ import annotations

import pytest

from domain.carbon.folder_words import told_by
from domain.shared.error import InvalidInput

TYPES = ("paper", "plane")


def test_folders_tell_in_any_order_and_need_not_tell_all() -> None:
    everything = {"year": "2025", "type": "paper", "institution": "ethz"}
    assert told_by(["institution=ethz", "paper", "2025"], TYPES) == everything
    assert told_by(["2025", "paper", "institution=ethz", "2025"], TYPES) == everything
    assert told_by([], TYPES) == {}


@pytest.mark.parametrize("folder", ["ethz", "Paper", "25", "२०२५", "Institution=ethz"])
def test_a_folder_that_says_nothing_is_named_with_what_to_do(folder: str) -> None:
    with pytest.raises(InvalidInput, match=f"the folder '{folder}' is neither .* institution=NAME"):
        told_by(["paper", folder], TYPES)


@pytest.mark.parametrize("folders", ["2024 2025", "paper plane", "institution=a institution=b"])
def test_folders_that_contradict_each_other_are_refused(folders: str) -> None:
    with pytest.raises(InvalidInput, match=r"two folders name its (year|type|institution)"):
        told_by(folders.split(), TYPES)
