"""What the scans listed, as the nightly job reads it; which word it gives is in test_joined."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from analytics.days import Days, microseconds
from analytics.incidents import Round
from analytics.nightly import read_round, root_beside, rounds
from analytics.storage import FolderStorage
from mendq.cases.finding import Scanned, findings_key, with_managed
from tests.analytics.authored import QUEUE_ARN, Account, at, burst
from tests.analytics.conftest import RunNightly

NOON = datetime(2026, 11, 10, 12, 1, 2, tzinfo=UTC)


def document(moment: datetime = NOON, *queue_arns: str, whole: bool = True) -> dict[str, Any]:
    """As the scan writes it."""
    return with_managed(Scanned().document(moment), queue_arns, whole=whole)


def scan(folder: Path, moment: datetime, *queue_arns: str) -> None:
    path = folder / findings_key(moment)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document(moment, *queue_arns)))


def test_a_scans_list_is_read_back() -> None:
    written = json.dumps(document(NOON, "b", "a", whole=False)).encode()
    assert read_round(written) == Round(microseconds(NOON), ("a", "b"), whole=False)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("at", None),
        ("at", "noon"),
        ("managed", None),
        ("managed", [7]),
        ("managed", ["\ud800"]),
        ("managed", ""),
        ("managed", "arn"),
        ("managed", {}),
        ("managed", {"arn": 1}),
    ],
)
def test_a_list_with_one_wrong_field_says_nothing(field: str, value: object) -> None:
    assert read_round(json.dumps(document()).encode()) is not None
    assert read_round(json.dumps({**document(), field: value}).encode()) is None


def test_only_a_plain_yes_is_a_whole_list() -> None:
    odd = read_round(json.dumps({**document(), "managed_whole": "yes"}).encode())
    assert odd is not None
    assert not odd.whole


@pytest.mark.parametrize(
    ("cases", "findings"),
    [
        ("s3://bucket/cases", "s3://bucket/findings"),
        ("s3://bucket/some/cases/", "s3://bucket/some/findings"),
        ("s3://bucket", None),
        ("s3://bucket/", None),
        ("/tmp/x/cases", "/tmp/x/findings"),  # noqa: S108 - a name
        ("cases", "findings"),
    ],
)
def test_findings_lie_beside_the_cases(cases: str, findings: str | None) -> None:
    assert root_beside(cases) == findings


def test_scans_of_other_days_are_not_read(tmp_path: Path) -> None:
    for day in ("11-08", "11-09", "11-18", "11-19"):
        scan(tmp_path, at(f"{day} 12:00"), day)
    of_day = Days(NOON.date(), NOON.date())
    found = rounds(FolderStorage(str(tmp_path / "findings")), of_day)
    assert [each.queue_arns for each in found] == [("11-09",), ("11-18",)]


def test_a_nightly_says_of_a_queue_that_it_was_tagged_too_late(
    account: Account, run_nightly: RunNightly
) -> None:
    account.publish("11-10", burst("11-10 09:00"))
    for hour, arns in ((8, ()), (10, ()), (11, (QUEUE_ARN,))):
        scan(account.folder, at(f"11-10 {hour:02}:01"), *arns)
    assert run_nightly("11-10") == 0
    [incident] = account.rows("incidents", "11-10")
    assert (incident["outcome"], incident["why"]) == ("not_seen", "not_tagged_in_time")
