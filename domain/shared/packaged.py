"""SQL files that lie beside the modules that use them."""

from __future__ import annotations

from pathlib import Path


def packaged(module_file: str, name: str) -> str:
    """Return the text of `sql/<name>.sql` next to a module."""
    return (Path(module_file).parent / "sql" / f"{name}.sql").read_text(encoding="utf-8")
