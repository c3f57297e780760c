"""The refusal codes that the product can emit, and those that the runbooks explain."""

from __future__ import annotations

import re
from functools import cache

from mendq.catalogue import CATALOGUE
from mendq.catalogue.access.restore_policy import FINDING_BY_REFUSING_POLICY
from mendq.catalogue.symptom import CallExample, QueueExample
from mendq.model.case import QUEUE_DELETED_CODE
from mendq.model.harms import OWN_CHANGE_CODE
from mendq.model.plan import AWS_REFUSED
from tests.architecture.refusal_codes import codes_returned, codes_spelled_out
from tests.source_files import ROOT

RUNBOOKS = ROOT / "docs" / "runbooks"
OVERVIEW = RUNBOOKS / "README.md"
# Codes that the source emits under a constant's name.
CONSTANT_CODES = {AWS_REFUSED, OWN_CHANGE_CODE, QUEUE_DELETED_CODE, "redrive_halted"}
# Errors of commands that no case can have, and that the overview explains.
COMMAND_CODES = {"clock_wrong"}
# The codes of failed calls that Mendq ignores.
IGNORE_CODES = codes_returned(
    (ROOT / "mendq" / "model" / "ignored_calls.py").read_text(), "find_ignore_reason"
)
CODE_ROW = re.compile(r"^\| ((?:`[a-z_]+`(?:, )?)+)", re.MULTILINE)


@cache
def list_emitted_codes() -> set[str]:
    """Return every refusal code that an operator can meet.

    `watch.py` is left out: why a nightly run is not Mendq's is only logged.
    """
    codes = IGNORE_CODES | COMMAND_CODES | list_codes_behind_names()
    for path in (ROOT / "mendq").rglob("*.py"):
        if path.name != "watch.py":
            codes |= set(codes_spelled_out(path.read_text()))
    return codes


def list_codes_behind_names() -> set[str]:
    """Return the codes that the source does not spell out where it refuses.

    Each is the expected outcome of a symptom's example, or a constant.
    """
    codes = set(CONSTANT_CODES)
    for entry in CATALOGUE:
        for example in entry.examples():
            if not isinstance(example, CallExample | QueueExample):
                continue
            if isinstance(example.expected_outcome, str):
                codes.add(example.expected_outcome)
    for finding in FINDING_BY_REFUSING_POLICY.values():
        codes.add(finding.code)
    return codes


def read_explained_codes(text: str) -> set[str]:
    """Return the codes in the first cell of each table row."""
    codes: set[str] = set()
    for first_cell in CODE_ROW.findall(text):
        codes |= set(re.findall(r"[a-z_]+", first_cell))
    return codes
