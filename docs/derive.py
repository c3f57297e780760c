"""Writes what the documents derive from the code; with --check, fails where they are stale.

`python -m docs.derive`. What stands between `<!-- derived: NAME (make docs) -->` and the next
`<!-- end ... -->` of a page comes from the function of that name below, whichever page it is.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from docs import costs, stack, tables
from docs.tables import ROOT
from infra.settings.page import page

MARKED = re.compile(
    r"(?P<begin><!-- derived: (?P<name>[^>]+) \(make docs\) -->\n?)"
    r".*?(?P<end><!-- end(?:: [^>]+)? -->)",
    re.DOTALL,
)
DERIVED: Mapping[str, Callable[[], str]] = {
    "symptoms": tables.symptoms,
    "what lint looks for": tables.linted,
    "commands": tables.commands,
    "runbooks": tables.runbooks,
    "the trail's choices": tables.hidden,
    "the states": tables.states,
    "what moves a case": tables.moves,
    "how long a case may stay": tables.stays,
    "the stages": tables.stages,
    "the rows of the stages": tables.stage_rows,
    "the bounds": tables.bounds,
    "the alarms that reach people": tables.alarms_that_reach_people,
    "the alarms beneath": tables.alarms_beneath,
    "what wakes you": tables.when_woken,
    "the Lambdas": tables.lambdas,
    "the policy look": lambda: tables.policy("look"),
    "the policy steer": lambda: tables.policy("steer"),
    "the policy record": lambda: tables.policy("record"),
    "the commands by policy": tables.commands_by_policy,
    "the rights of each command": tables.rights,
    "roles": stack.roles,
    "what starts what": stack.picture,
    "the parts": stack.parts,
    "the idle stack": costs.idle_stack,
    "the stack and the prices": costs.stack_and_prices,
}


def derived(text: str) -> str:
    """`text` with what stands between marks written anew; raise KeyError for an unknown name."""

    def anew(found: re.Match[str]) -> str:
        ending = "\n" if found["begin"].endswith("\n") else ""
        return f"{found['begin']}{DERIVED[found['name']]()}{ending}{found['end']}"

    return MARKED.sub(anew, text)


def documents() -> dict[Path, str]:
    """Every page that has marks, and what it has to say; the settings are derived as a whole."""
    pages = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    texts = {path: path.read_text() for path in pages}
    marked = {path: derived(text) for path, text in texts.items() if MARKED.search(text)}
    return {**marked, ROOT / "docs" / "settings.md": page()}


def main(arguments: list[str]) -> int:
    """Return 0, or 1 where --check found a stale document."""
    found = documents().items()
    stale = {path: text for path, text in found if not path.exists() or path.read_text() != text}
    for path, text in stale.items():
        if "--check" in arguments:
            print(f"{path.relative_to(ROOT)} is stale: make docs", file=sys.stderr)
        else:
            path.write_text(text)
            print(f"wrote {path.relative_to(ROOT)}")
    return int(bool(stale) and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
