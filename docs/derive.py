"""Writes what the documents derive from the code; with --check, fails where they are stale."""

from __future__ import annotations

import sys
from pathlib import Path

import commands_table
import roles_table
import runbooks_list
import stack_cost
import trail_choices
from alarms_page import alarms_page
from redrive_page import redrive_page
from rights_page import rights_page
from stack_page import stack_documents
from states_page import states_page

from functions.catalogue import CATALOGUE
from infra.settings.page import page

ROOT = Path(__file__).resolve().parents[1]
BEGIN = "<!-- derived: symptoms (make docs) -->"
END = "<!-- end -->"


def symptom_table() -> str:
    """The catalogue as a Markdown table."""
    rows = [
        f"| [`{each.name}`]({each.runbook}) | {each.sentence} | {each.plan_in_words} "
        f"| {each.ships_as} |"
        for each in CATALOGUE
    ]
    head = ["| symptom | what goes wrong | what Mendq does | ships as |", "|---|---|---|---|"]
    return "\n".join([*head, *rows])


def between_marks(text: str, table: str, begin: str = BEGIN, end: str = END) -> str:
    """`text` with what stands between the marks replaced by `table`."""
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{table}\n{end}{after}"


def documents() -> dict[Path, str]:
    """Every derived document and what it has to say."""
    readme, cost = ROOT / "README.md", ROOT / "docs" / "cost.md"
    deploy = ROOT / "docs" / "deploy.md"
    threats, runbooks = ROOT / "docs" / "threat-model.md", ROOT / "docs" / "runbooks" / "README.md"
    read_me = between_marks(readme.read_text(), symptom_table())
    return {
        readme: between_marks(read_me, commands_table.commands_table(), commands_table.BEGIN),
        threats: between_marks(threats.read_text(), roles_table.roles_table(), roles_table.BEGIN),
        runbooks: between_marks(
            runbooks.read_text(), runbooks_list.runbooks_list(), runbooks_list.BEGIN
        ),
        ROOT / "docs" / "settings.md": page(),
        cost: _cost_page(cost.read_text()),
        deploy: between_marks(
            deploy.read_text(),
            trail_choices.trail_table(),
            trail_choices.BEGIN,
            trail_choices.END,
        ),
        ROOT / "docs" / "states.md": states_page(),
        ROOT / "docs" / "alarms.md": alarms_page(),
        ROOT / "docs" / "redrive-stages.md": redrive_page(),
        ROOT / "docs" / "rights.md": rights_page(),
        **{ROOT / "docs" / name: text for name, text in stack_documents().items()},
    }


def _cost_page(text: str) -> str:
    """Without what `make bench` tells it."""
    for part, begin, end in (
        (stack_cost.idle_stack(), stack_cost.IDLE_BEGIN, stack_cost.IDLE_END),
        (trail_choices.hidden_table(), trail_choices.BEGIN, trail_choices.END),
        (stack_cost.stack_cost(), stack_cost.BEGIN, stack_cost.END),
    ):
        text = between_marks(text, part, begin, end)
    return text


def main(arguments: list[str]) -> int:
    """0, or 1 where --check found a stale document."""
    stale = {
        path: text
        for path, text in documents().items()
        if not path.exists() or path.read_text() != text
    }
    if "--check" in arguments:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is stale: make docs", file=sys.stderr)
        return int(bool(stale))
    for path, text in stale.items():
        path.write_text(text)
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
