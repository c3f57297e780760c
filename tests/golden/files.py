"""The golden files of the repository, and the function that computes the content of each."""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.source_files import ROOT

# The parts of the weekly report that have a golden file of their own.
REPORT_PARTS = (
    "heat",
    "made_from",
    "nightly_runs",
    "not_seen",
    "open_now",
    "people",
    "per_day",
    "places",
    "rows",
    "standout",
    "tiles",
    "times",
    "to_do",
    "verdict",
    "whole",
)
# A line that begins so is the title of a section in a golden text file.
SECTION_MARK = "=== "


@dataclass(frozen=True)
class GoldenFile:
    """One golden file.

    `path` is relative to the repository. `computed_by` names the function that returns the file's
    present text, as `module:function`; the module is imported only if it is asked. `arguments` are
    passed to that function. `is_slow` means that computing takes too long for `make check`, so that
    only the file's test compares it.
    """

    path: str
    computed_by: str
    arguments: tuple[str, ...] = ()
    is_slow: bool = False

    def compute_text(self) -> str:
        """Return the text that the file would have if it were accepted now."""
        function: Callable[..., str] = pkgutil.resolve_name(self.computed_by)
        return function(*self.arguments)

    def read_text(self, root: Path = ROOT) -> str:
        """Return the recorded text, or an empty text if the file does not exist yet."""
        path = root / self.path
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def parse(self, text: str) -> Any:
        """Return the values in a text of this file: what its JSON holds, or its sections."""
        if self.path.endswith(".json"):
            return json.loads(text) if text else {}
        if text.startswith(SECTION_MARK):
            return split_sections(text)
        return text


GOLDEN_FILES: tuple[GoldenFile, ...] = (
    GoldenFile("tests/analytics/week.json", "tests.analytics.counted_week:render_week"),
    GoldenFile(
        "tests/catalogue/sentences.json", "tests.catalogue.recorded_sentences:render_sentences"
    ),
    GoldenFile(
        "tests/cli/commands/explained.json", "tests.cli.commands.explained_record:render_json"
    ),
    GoldenFile(
        "tests/cli/commands/explained.txt", "tests.cli.commands.explained_record:render_text"
    ),
    GoldenFile("tests/infra/stack.json", "tests.infra.known_stack:render_stack", is_slow=True),
    GoldenFile("tests/notifications/commands.txt", "tests.notifications.pages:render_commands"),
    GoldenFile("tests/notifications/pages.txt", "tests.notifications.pages:render_pages"),
    *(
        GoldenFile(
            f"tests/report/sentences/{part}.json",
            "tests.report.report_sentences:render_part",
            arguments=(part,),
        )
        for part in REPORT_PARTS
    ),
)


def find_golden_file(path: str, files: Sequence[GoldenFile] = GOLDEN_FILES) -> GoldenFile:
    """Return the golden file at `path`.

    Raises:
        LookupError: No golden file has this path. The message lists those that exist.
    """
    for golden_file in files:
        if golden_file.path == path:
            return golden_file
    known = "\n".join(f"  {golden_file.path}" for golden_file in files)
    raise LookupError(f"{path} is not a golden file. The golden files are:\n{known}")


def split_sections(text: str) -> dict[str, str]:
    """Return the sections of a golden text by their titles."""
    sections: dict[str, str] = {}
    for section in text.split(SECTION_MARK)[1:]:
        title, _, body = section.partition("\n")
        sections[title] = body
    return sections
