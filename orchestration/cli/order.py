"""The order in which `--help` lists commands: that of the work."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup


def in_order(*names: str) -> type[TyperGroup]:
    """A group that lists these commands first."""

    class InOrder(TyperGroup):
        def list_commands(self, ctx: Any) -> list[str]:
            return sorted(super().list_commands(ctx), key=(*names, *super().list_commands(ctx)).index)

    return InOrder
