"""The units of a sample university, from faculties to teams, and how they changed over the years."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

ROOT = "UNI"

FACULTIES = (
    ("Architecture", ("Design", "Structures", "Urbanism", "Building Physics")),
    ("Basic Sciences", ("Physics", "Chemistry", "Mathematics", "Crystallography", "Catalysis")),
    ("Computer Science", ("Systems", "Learning", "Security", "Graphics")),
    ("Engineering", ("Mechanics", "Materials", "Energy", "Microengineering", "Robotics", "Optics")),
    ("Environment", ("Ecology", "Hydrology", "Transport", "Atmosphere", "Soil")),
    ("Humanities", ("History", "Languages", "Digital Humanities")),
    ("Life Sciences", ("Neuroscience", "Cancer Research", "Bioengineering", "Infection", "Proteomics")),
    ("Management", ("Finance", "Operations", "Innovation")),
    ("Medicine", ("Surgery", "Radiology", "Public Health", "Pharmacology")),
)
SERVICES = ("Real Estate", "Information Technology", "Library", "Canteens", "Finance Office", "Travel Office")
SURNAMES = (
    *("Ackermann", "Bärtschi", "Châtelain", "Dubois", "Egger", "Favre", "Gómez", "Huber", "Ito", "Jäggi"),
    *("Keller", "Lüthi", "Müller", "Nguyễn", "Oberson", "Pásztor", "Quiroga", "Rossi", "Šimić", "Tanner"),
)
REORGANISED = 2024
"""From this year on an institute belongs to another faculty, and a group of it is gone."""
NEW_FACULTY = 2025
"""From this year on there is a faculty more, made of institutes of two others."""


@dataclass(frozen=True)
class Unit:
    unit_id: str
    parent_id: str
    name: str


def units(year: int, seed: int) -> list[Unit]:
    """The tree as it was in a year, from the top down."""
    found = [Unit(ROOT, "", "Sample University"), *_services(), *_faculties(seed)]
    if year >= REORGANISED:
        found = [_moved(u, {"F05-I3": "F04"}) for u in found if not u.unit_id.startswith("F05-I3-G1")]
    if year >= NEW_FACULTY:
        found = [_moved(u, {"F03-I2": "F10", "F07-I3": "F10"}) for u in found]
        found += [Unit("F10", ROOT, "Faculty of Data"), Unit("F10-I1", "F10", "Institute of Data Ethics")]
    return found


def _moved(unit: Unit, parents: dict[str, str]) -> Unit:
    return replace(unit, parent_id=parents.get(unit.unit_id, unit.parent_id))


def _services() -> Iterator[Unit]:
    yield Unit("ADM", ROOT, "Central Services")
    for number, name in enumerate(SERVICES, 1):
        yield Unit(f"ADM-{number}", "ADM", name)


def _faculties(seed: int) -> Iterator[Unit]:
    rng = np.random.default_rng([seed, 1])
    for number, (faculty, institutes) in enumerate(FACULTIES, 1):
        at = f"F{number:02d}"
        yield Unit(at, ROOT, f"Faculty of {faculty}")
        for place, institute in enumerate(institutes, 1):
            below = f"{at}-I{place}"
            yield Unit(below, at, f"Institute of {institute}")
            yield from _groups(below, rng)


def _groups(institute: str, rng: np.random.Generator) -> Iterator[Unit]:
    for number in range(1, int(rng.integers(4, 9))):
        group = f"{institute}-G{number}"
        yield Unit(group, institute, f"Chair of {SURNAMES[rng.integers(len(SURNAMES))]}")
        for team in range(1, int(rng.integers(1, 4)) if rng.random() < 0.2 else 1):
            yield Unit(f"{group}-T{team}", group, f"Team {team}")
