"""The last lines of a demo: what it left here, and what to do next."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from local_account.demo import pages

REPORT, MAIL = "report.html", "report.eml"
NEXT = (
    ("make account", "keeps such an account standing, for tries of your own"),
    ("docs/deploy.md", "puts Mendq on your own account, to observe at first"),
)


def clear(folder: Path, result: str) -> None:
    """So that nothing of an earlier demo is taken for this one's."""
    for name in (REPORT, MAIL, pages.NAME, result):
        (folder / name).unlink(missing_ok=True)


def farewell(result: Path, *, is_as_claimed: bool) -> RenderableType:
    """What lies beside `result`; only what is there is named."""
    folder = result.parent
    left = (
        (folder / REPORT, "the week's page: open it in a browser"),
        (folder / MAIL, "the same as a mail, for any mail program"),
        (folder / pages.NAME, "what people were paged about"),
        (result, "all of it, for machines"),
    )
    claim = Text("It ended as claimed.", style="bold green")
    if not is_as_claimed:
        claim = Text("It did not end as claimed: the lines in red say why.", style="bold red")
    there = [(str(path), says) for path, says in left if path.is_file()]
    return Group(Text(""), claim, _lines(there), Text("What next", style="bold"), _lines(NEXT))


def _lines(named: Iterable[tuple[str, str]]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(style="dim")
    for name, says in named:
        grid.add_row(Text(f"  {name}"), Text(says))
    return grid
