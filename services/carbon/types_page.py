"""The text of `docs/carbon-types.md`, from the carbon catalogue. `make docs` writes it."""

from __future__ import annotations

from collections.abc import Iterator

from domain.carbon.catalogue import Catalogue, EmissionType, EntryColumn, EntryType, catalogue

HEAD = """# What carbon counts, and how

Generated from `domain/carbon/catalogue.yaml` by `make docs`: change it there. How files look, and what
becomes of them, stands in [Carbon](carbon.md). Every entry has a result for each kind of emissions of its
type: unmatched where no factor fits. What is *optional* is only counted in years that have a factor for it.
"""
_ROLES = {
    "amount": "the amount",
    "times": "multiplies",
    "share": "multiplies, 0 to 1",
    "flag": "yes or no; yes multiplies by {times:g}",
    "key": "chooses the factor",
    "class": "chooses the factor, derived from the amount",
}


def render() -> str:
    known = catalogue()
    return (
        "\n".join([HEAD, *(line for module in known.modules for line in _module(known, module.name))]) + "\n"
    )


def _module(known: Catalogue, name: str) -> Iterator[str]:
    module = known.module(name)
    yield f"## {module.title}\n\n`{module.name}`. {module.description}\n"
    for kind in module.types:
        yield from _type(kind)


def _type(kind: EntryType) -> Iterator[str]:
    yield f"### {kind.title}: `{kind.name}`\n\n{kind.description}\n"
    yield f"- **Mass**: {kind.formula}"
    yield f"- **Units**: {', '.join(kind.units)}"
    yield f"- **Emissions**: {', '.join(map(_emission, kind.emissions))}"
    yield f"- **Method**: {kind.method}\n"
    yield "| column | what it does | values | if empty | means |\n|---|---|---|---|---|"
    yield from (_column(column) for column in kind.columns)
    yield ""


def _emission(one: EmissionType) -> str:
    return f"`{one.name}` (scope {one.scope}, {one.category}{', optional' * one.optional})"


def _column(column: EntryColumn) -> str:
    role = _ROLES[column.role].format(times=column.times)
    values = ", ".join(column.values) or ", ".join(_steps(column))
    empty = "an error" if column.required else column.default or "–"
    if column.role == "class":
        empty = "in no file"
    fallback = f"; without a factor of its own that of {column.fallback}" if column.fallback else ""
    return f"| `{column.name}` | {role} | {values or 'any'} | {empty} | {column.description}{fallback} |"


def _steps(column: EntryColumn) -> Iterator[str]:
    for step in column.steps:
        yield step.name if step.below is None else f"{step.name} (below {step.below:g})"
