from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest

from analytics.days import Days
from analytics.nightly import CaseFiles, case_files
from analytics.storage import FolderStorage
from tests.analytics.authored import Account, transition

TWELFTH = Days(date(2026, 11, 12), date(2026, 11, 12))


def step(
    n: int, state: str, day: str, case_id: str = "visibility_timeout_too_short-0123456789ab"
) -> dict[str, Any]:
    moment = f"{day} 10:00:00"
    return transition(n, state, moment, first_at=moment, last_at=moment, case_id=case_id)


def read(account: Account) -> CaseFiles:
    return case_files(FolderStorage(str(account.cases)), TWELFTH)


def test_a_case_that_opened_long_before_is_read_from_its_beginning(account: Account) -> None:
    account.record_transitions(
        step(1, "proposed", "10-20"), step(2, "approved", "10-21"), step(3, "applied", "11-11")
    )
    assert sorted(each.n for each in read(account).transitions) == [1, 2, 3]


def test_a_case_that_was_over_long_before_is_left_out(account: Account) -> None:
    account.record_transitions(step(1, "observed", "11-03"), step(1, "applied", "11-05", "later-1"))
    assert [each.case_id for each in read(account).transitions] == ["later-1"]


def test_what_a_day_before_holds_of_other_cases_is_not_opened(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.record_transitions(
        step(1, "applied", "10-20", "long-1"),
        step(1, "applied", "10-20", "other-1"),
        step(2, "ineffective", "11-11", "long-1"),
    )
    opened: list[str] = []
    reading = FolderStorage.read

    def noted(storage: FolderStorage, path: str) -> bytes | None:
        opened.append(path)
        return reading(storage, path)

    monkeypatch.setattr(FolderStorage, "read", noted)
    read(account)
    assert sorted(opened) == ["dt=2026-10-20/long-1-1.json", "dt=2026-11-11/long-1-2.json"]


def test_a_case_whose_beginning_is_lost_is_read_as_far_as_it_is_there(account: Account) -> None:
    account.record_transitions(step(2, "applied", "10-20"), step(3, "ineffective", "11-11"))
    (account.cases / "dt=2026-10-19").mkdir()
    (
        account.cases / "dt=2026-10-19" / "visibility_timeout_too_short-0123456789ab-1.json"
    ).write_text("{")
    found = read(account)
    assert sorted(each.n for each in found.transitions) == [2, 3]
    assert found.unreadable == 0
    assert found.since == date(2026, 11, 4)


def test_files_that_are_no_transitions_are_counted(account: Account) -> None:
    account.record_transitions(step(1, "applied", "11-11"))
    (account.cases / "dt=2026-11-11" / "README.txt").write_text(json.dumps({}))
    assert read(account).unreadable == 1
