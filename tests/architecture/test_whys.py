"""The nightly job gives reasons and the report has words for them; neither sees the other."""

from __future__ import annotations

import re
from pathlib import Path

from mendq.report.outcomes import WHY

ROOT = Path(__file__).resolve().parents[2]


def test_the_report_has_words_for_every_reason_of_the_nightly() -> None:
    source = (ROOT / "analytics" / "incidents.py").read_text()
    _, _, why = source.partition("def _why()")
    emitted = set(re.findall(r'sf\.lit\("([a-z_]+)"\)', why.partition("\ndef ")[0]))
    assert {"unknown_code", "case_open", "unknown"} <= emitted
    assert emitted <= set(WHY)
