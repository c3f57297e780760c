"""The scan's last round, as the case store and the case bucket know it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mendq.cases.archive import FindingsBucket
from mendq.cases.finding import Scanned, round_of
from mendq.catalogue import CATALOGUE
from mendq.cli.doctor.check import Check, Status
from mendq.cli.doctor.checks import Findings
from mendq.cli.doctor.last_round import LastRound, check_of, last_round
from mendq.cli.doctor.visibility import LATE_DELETES_PASS, sights
from mendq.cli.look.doctor import print_findings
from mendq.cli.output import Output
from mendq.scan.store import ScanStore
from tests.cli.conftest import Operator

NOW = datetime(2026, 11, 20, 12, 20, tzinfo=UTC)
ROUND = LastRound(NOW - timedelta(minutes=5), 30, 9, 5, 0, 2)


def _begin(operator: Operator, at: datetime) -> None:
    assert ScanStore(operator.aws.clients.dynamodb, "case_store", "scan").begin(at)


def _put(operator: Operator, at: datetime, **over: Any) -> None:
    document = Scanned(queues=30, suspects=9, measured=5, skipped=4).document(at)
    FindingsBucket(operator.aws.clients.s3, "cases").put(round_of(at), {**document, **over})


def test_before_the_first_there_is_none(operator: Operator) -> None:
    assert last_round(operator.account) is None
    _begin(operator, NOW)
    assert last_round(operator.account) is None, "its first stretch is under way"


def test_it_is_read_as_it_was_put_down(operator: Operator) -> None:
    _begin(operator, NOW)
    _put(operator, NOW)
    assert last_round(operator.account) == LastRound(NOW, 30, 9, 5, 4, 0)


def test_while_one_is_under_way_the_one_before_is_said(operator: Operator) -> None:
    earlier = NOW - timedelta(hours=1)
    _begin(operator, NOW)
    _put(operator, earlier)
    found = last_round(operator.account)
    assert found is not None
    assert found.at == earlier


def test_what_is_no_round_is_none(operator: Operator) -> None:
    _begin(operator, NOW)
    _put(operator, NOW, queues_scanned="many")
    assert last_round(operator.account) is None


def _checked(operator: Operator, found: LastRound | None, hours_old: int = 100) -> Check:
    account = replace(operator.account, made_at=NOW - timedelta(hours=hours_old))
    return check_of(found, account, NOW)


def test_what_it_skipped_is_a_warning_and_none_a_fault(operator: Operator) -> None:
    assert _checked(operator, ROUND).status is Status.OK
    skipped = _checked(operator, replace(ROUND, skipped=4))
    assert skipped.status is Status.WARN
    assert "4 skipped for the budget" in skipped.says
    assert "scanMetricsPerDay" in skipped.remedy
    late = replace(ROUND, at=NOW - timedelta(hours=3))
    assert _checked(operator, late).status is Status.FAIL
    never, not_yet = _checked(operator, None), _checked(operator, None, hours_old=1)
    assert (never.status, not_yet.status) == (Status.FAIL, Status.WARN)
    assert "the log of" in never.remedy
    assert not_yet.remedy == "ask again in an hour"


def test_what_it_failed_at_is_read_and_a_version_before_wrote_none(operator: Operator) -> None:
    _begin(operator, NOW)
    _put(operator, NOW, gone=1, unseen=2, failed=3)
    found = last_round(operator.account)
    assert found is not None
    assert (found.gone, found.unseen, found.failed) == (1, 2, 3)
    document = Scanned(queues=30).document(NOW)
    for name in ("gone", "unseen", "failed"):
        del document[name]
    FindingsBucket(operator.aws.clients.s3, "cases").put(round_of(NOW), document)
    found = last_round(operator.account)
    assert found is not None
    assert (found.queues, found.failed) == (30, 0)


def test_a_round_that_failed_at_some_queue_is_a_warning_and_at_all_a_fault(
    operator: Operator,
) -> None:
    assert _checked(operator, replace(ROUND, gone=30)).status is Status.OK
    none_managed = replace(ROUND, queues=0, suspects=0, measured=0)
    assert _checked(operator, none_managed).status is Status.OK
    some = _checked(operator, replace(ROUND, unseen=29, failed=29))
    assert some.status is Status.WARN
    assert "29 failed" in some.says
    listing = _checked(operator, replace(ROUND, failed=1))
    assert listing.status is Status.WARN
    for gone, unseen in ((0, 30), (1, 29)):
        every = _checked(operator, replace(ROUND, gone=gone, unseen=unseen, failed=unseen))
        assert every.status is Status.FAIL
        assert "nothing could be seen of any queue" in every.says
        assert "the log of" in every.remedy


def test_what_only_a_scan_finds_is_said_to_be_found_by_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    queue = "arn:aws:sqs:us-east-1:123456789012:orders"
    print_findings(Output(as_json=False), Findings([], [queue], last_round=ROUND))
    shown = capsys.readouterr().out
    table, _, scanned = shown.partition("What the scan finds")
    alone = [each.name for each in CATALOGUE if each.detection and not each.seen_as]
    assert alone
    for name in alone:
        assert name not in table
        assert name in scanned
    assert "by the scan" in scanned
    assert "12:15 UTC" in scanned
    assert "none skipped" in scanned


def test_a_late_delete_on_a_standard_queue_names_the_scan() -> None:
    assert "the scan finds" in LATE_DELETES_PASS
    (found,) = (each for each in sights([], []) if each.symptom == "visibility_timeout_too_short")
    assert found.by_the_scan
    assert found.document()["by_the_scan"]
