"""The report says of each week in `sentences/*.json` what these golden files hold."""

from __future__ import annotations

import pytest

from tests.golden.checks import fail_if_stale
from tests.golden.files import REPORT_PARTS
from tests.report.report_sentences import SECTIONS_BY_PART, find_file


@pytest.mark.parametrize("part", REPORT_PARTS)
def test_report_of_each_stored_week_has_the_recorded_sentences(part: str) -> None:
    fail_if_stale(find_file(part))


def test_every_part_of_the_report_has_a_golden_file() -> None:
    assert set(SECTIONS_BY_PART) == set(REPORT_PARTS)
