"""How large the house may be, which its words are: `python -m tests.architecture.ceilings`.

A ceiling is what the tree had when it was set, and is lowered whenever the tree has less; the
target is where it is to end. What adds a capability says by how much it raises one, and why.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
COUNT = Path(__file__).with_name("count.py")


@dataclass(frozen=True)
class Ceiling:
    """A number of `count.py`, the most that it may be, and what it is to become."""

    what: str
    part: str
    key: str
    most: int
    target: int


CEILINGS = (
    # Beyond the 24,900 of what was there the front door has 1,300 lines, speed and the bill 400,
    # many accounts 1,500; the tests as many. What stood there twice made room for what an estate
    # that is there already needs of lint, and for what holds off who attacks it; a scan without a
    # stack names the command of each finding.
    Ceiling("code lines of the product", "product", "code_lines", 28_135, 28_100),
    Ceiling("code lines beside it", "beside", "code_lines", 5_000, 5_000),
    Ceiling("code lines of the tests", "tests", "code_lines", 34_100, 34_100),
    # A state machine may be longer: table, rows and actions stand together.
    Ceiling("files over 400 lines", "cut", "files_over_400_lines", 1, 1),
    Ceiling("small files with one importer", "cut", "small_files_with_one_importer", 0, 0),
    Ceiling("file names in several rooms", "cut", "file_names_in_several_rooms", 10, 10),
    Ceiling("heal's longest chain of imports", "cut", "longest_import_chain_of_heal", 14, 14),
    Ceiling("functions over 40 lines", "cut", "functions_over_40_lines", 0, 0),
    Ceiling("functions over 7 parameters", "cut", "functions_over_7_parameters", 0, 0),
    Ceiling("classes over 15 fields", "cut", "classes_over_15_fields", 0, 0),
    # What is left at the end are AWS's own names, such as DeadLetterQueueSourceArn.
    Ceiling("old words in identifiers", "old_words", "in_identifiers", 6, 0),
    Ceiling("old words in strings", "old_words", "in_strings", 17, 0),
    Ceiling("old words in pages", "old_words", "in_pages", 19, 0),
)
# Rooms that may hold more than 15 files, and how many; the target is the catalogue alone.
ROOMS = {"mendq/catalogue": 48}

Measured = Mapping[str, Mapping[str, Any]]


def measured() -> Measured:
    """Return what `count.py` finds in the files that git knows."""
    command = [sys.executable, str(COUNT), str(ROOT), "--json"]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(found.stdout))


def exceeded(found: Measured) -> Iterator[str]:
    """Yield a sentence for each ceiling that is exceeded."""
    for each in CEILINGS:
        count = found[each.part][each.key]
        if count > each.most:
            yield (
                f"{each.what}: {count:,}, and {each.most:,} is the ceiling "
                f"(target {each.target:,}); python {COUNT.relative_to(ROOT)} --where names them"
            )
    for room, files in found["cut"]["rooms_over_15_files"].items():
        if files > ROOMS.get(room, 15):
            yield f"{room} holds {files} files, and may hold {ROOMS.get(room, 15)}: split the room"


def main() -> int:
    """Return 1 where a ceiling is exceeded, and say which."""
    found = measured()
    mistakes = list(exceeded(found))
    for mistake in mistakes:
        print(mistake, file=sys.stderr)
    if not mistakes:
        lines = ", ".join(f"{part} {found[part]['code_lines']:,}" for part in ("product", "tests"))
        print(f"size: below every ceiling ({lines} code lines)")
    return int(bool(mistakes))


if __name__ == "__main__":
    sys.exit(main())
