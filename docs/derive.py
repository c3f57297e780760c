"""Write the parts of the docs that are derived from the code: `python -m docs.derive`.

In a page, a derived part stands between a mark and the next `<!-- end -->`. The mark names a module
of MODULE_BY_NAME, one of its public functions, and the function's arguments:
`<!-- derived: tables.policy look (make docs) -->`. docs/settings.md and the pictures are derived as
whole files.

With --check, no file is written, and the exit code is 1 if a file is stale.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from docs import costs, pictures, stack, symptom_tables, tables
from docs.markdown import ROOT
from infra.settings.page import render_page
from tests.prove import scale
from tests.source_files import list_files

DERIVED_PART_PATTERN = re.compile(
    r"(?P<begin><!-- derived: (?P<name>[^>]+) \(make docs\) -->\n?).*?(?P<end><!-- end -->)",
    re.DOTALL,
)
MODULE_BY_NAME = {
    "costs": costs,
    "scale": scale,
    "stack": stack,
    "symptom_tables": symptom_tables,
    "tables": tables,
}


def _call_marked_function(mark: str) -> str:
    """Call the function that a mark names, such as `tables.policy look`, and return its result.

    Raises:
        KeyError: The module is not in MODULE_BY_NAME.
        AttributeError: The module has no such function.
    """
    module_name, function_name, *arguments = re.split(r"[. ]", mark)
    return str(getattr(MODULE_BY_NAME[module_name], function_name)(*arguments))


def fill_derived_parts(page_text: str) -> str:
    """Return the text of a page in which the content of every derived part is new."""

    def replace_part(derived_part_match: re.Match[str]) -> str:
        line_ending = "\n" if derived_part_match["begin"].endswith("\n") else ""
        derived_text = _call_marked_function(derived_part_match["name"])
        return (
            f"{derived_part_match['begin']}{derived_text}{line_ending}{derived_part_match['end']}"
        )

    return DERIVED_PART_PATTERN.sub(replace_part, page_text)


def make_documents() -> dict[Path, str]:
    """Return the new content of every file that is derived, wholly or in parts, by its path."""
    text_by_path: dict[Path, str] = {}
    for path in (ROOT / "README.md", *list_files("docs/*.md")):
        page_text = path.read_text()
        if DERIVED_PART_PATTERN.search(page_text):
            text_by_path[path] = fill_derived_parts(page_text)
    for file_name, svg in pictures.draw_pictures().items():
        text_by_path[pictures.PICTURES_FOLDER / file_name] = svg
    text_by_path[pictures.PICTURES_FOLDER / "scale.svg"] = pictures.draw_curves(scale.curves())
    text_by_path[ROOT / "docs" / "settings.md"] = render_page()
    return text_by_path


def main(arguments: list[str]) -> int:
    """Write the stale files and return 0.

    With --check, only print their names, and return 1 if there are any.
    """
    must_only_check = "--check" in arguments
    stale_count = 0
    for path, new_text in make_documents().items():
        if path.exists() and path.read_text() == new_text:
            continue
        stale_count += 1
        if must_only_check:
            print(f"{path.relative_to(ROOT)} is stale: make docs", file=sys.stderr)
        else:
            path.write_text(new_text)
            print(f"wrote {path.relative_to(ROOT)}")
    return 1 if stale_count and must_only_check else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
