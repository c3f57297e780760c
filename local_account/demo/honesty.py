"""What the account only accepts, so that nobody takes the demo for AWS."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from local_account.process import LocalAccount


@dataclass(frozen=True)
class Honesty:
    """What the account takes without doing it, and the settings below what AWS would allow.

    `clock_put_forward` is how the story shortened what takes minutes or days.
    """

    not_emulated: tuple[str, ...]
    floors_lowered: tuple[str, ...]
    clock_put_forward: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        account: LocalAccount,
        clock_put_forward: Iterable[str] = (),
        floors_lowered: Iterable[str] = (),
    ) -> Self:
        """As the account says of itself, and as its story says beyond that."""
        floors = (*account.floors_lowered, *floors_lowered)
        return cls(tuple(account.not_emulated), floors, tuple(clock_put_forward))

    def shown(self) -> RenderableType:
        """For the end of a story."""
        lines = Table.grid(padding=(0, 1, 0, 0))
        for each in self.not_emulated:
            lines.add_row("  -", Text(each), style="dim")
        floors = ", ".join(self.floors_lowered) or "none"
        return Group(
            Text("accepted here, not emulated", style="bold"),
            lines,
            Text.assemble(("floors lowered for this demo: ", "bold"), (floors, "dim")),
            *(Text(each, style="dim") for each in self.clock_put_forward),
        )
