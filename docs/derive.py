"""Writes what the documents derive from the code; with --check, fails where they are stale.

`python -m docs.derive`. A mark names a function of this room, and words to ask it with:
`<!-- derived: tables.policy look (make docs) -->`. What it says stands there up to the next
`<!-- end -->`, whichever page it is.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from docs import costs, pictures, stack, tables
from docs.tables import ROOT
from infra.settings.page import page
from tests.prove import scale
from tests.source_files import list_files

MARKED = re.compile(
    r"(?P<begin><!-- derived: (?P<name>[^>]+) \(make docs\) -->\n?).*?(?P<end><!-- end -->)",
    re.DOTALL,
)
PLACES = {"costs": costs, "scale": scale, "stack": stack, "tables": tables}


def _said(name: str) -> str:
    """What the function says; AttributeError or KeyError where there is none of that name."""
    place, function, *words = re.split(r"[. ]", name)
    return str(getattr(PLACES[place], function)(*words))


def derived(text: str) -> str:
    """`text` with what stands between marks written anew."""

    def anew(found: re.Match[str]) -> str:
        ending = "\n" if found["begin"].endswith("\n") else ""
        return f"{found['begin']}{_said(found['name'])}{ending}{found['end']}"

    return MARKED.sub(anew, text)


def documents() -> dict[Path, str]:
    """Every page that has marks, and what it has to say; settings and pictures as a whole."""
    pages = (ROOT / "README.md", *list_files("docs/*.md"))
    texts = {path: path.read_text() for path in pages}
    marked = {path: derived(text) for path, text in texts.items() if MARKED.search(text)}
    svgs = pictures.drawn() | {"scale.svg": pictures.curves_in_one(scale.curves())}
    drawn = {pictures.PICTURES / name: svg for name, svg in svgs.items()}
    return {**marked, **drawn, ROOT / "docs" / "settings.md": page()}


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
