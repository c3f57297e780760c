"""What lies in the case bucket: cases, odd cases, and the scans' lists beside them."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analytics.cases import case_rows, lives, read_transition, steps_of
from analytics.days import Days, days_of, microseconds
from analytics.incidents import Round
from analytics.nightly import CaseFiles, case_files, read_round, root_beside, rounds
from analytics.storage import FolderStorage
from analytics.week import reached_a_person, scanned
from mendq.cases.finding import Scanned, findings_key, with_managed
from mendq.model.case import State
from tests.analytics.authored import Account, at, transition
from tests.analytics.week_authored import WEEK

NOON = datetime(2026, 11, 10, 12, 1, 2, tzinfo=UTC)
CASE = "visibility_timeout_too_short-0123456789ab"


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
        *(("at", each) for each in (None, "noon")),
        *(("managed", each) for each in (None, [7], ["\ud800"], "", "arn", {}, {"arn": 1})),
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
        ("s3://bucket/some/cases/", "s3://bucket/some/findings"),
        ("s3://bucket", None),
        ("s3://bucket/", None),
        ("cases", "findings"),
    ],
)
def test_findings_lie_beside_the_cases(cases: str, findings: str | None) -> None:
    assert root_beside(cases) == findings


def test_scans_of_other_days_are_not_read(tmp_path: Path) -> None:
    for day in ("11-08", "11-09", "11-18", "11-19"):
        scan(tmp_path, at(f"{day} 12:00"), day)
    found = rounds(FolderStorage(str(tmp_path / "findings")), Days(NOON.date(), NOON.date()))
    assert [each.queue_arns for each in found] == [("11-09",), ("11-18",)]


# Which transitions are read.


def step(n: int, state: str, day: str, case_id: str = CASE) -> dict[str, Any]:
    moment = f"{day} 10:00:00"
    return transition(n, state, moment, first_at=moment, last_at=moment, case_id=case_id)


def read(account: Account) -> CaseFiles:
    return case_files(
        FolderStorage(str(account.cases)), Days(date(2026, 11, 12), date(2026, 11, 12))
    )


def test_a_case_that_opened_long_before_is_read_from_its_beginning_and_no_other(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.record_transitions(
        step(1, "applied", "10-20", "long-1"),
        step(1, "applied", "10-20", "other-1"),
        step(2, "unverified", "10-21", "long-1"),
        step(1, "observed", "11-03", "over-1"),
        step(3, "ineffective", "11-11", "long-1"),
    )
    opened: list[str] = []
    reading = FolderStorage.read

    def noted(storage: FolderStorage, path: str) -> bytes | None:
        opened.append(path)
        return reading(storage, path)

    monkeypatch.setattr(FolderStorage, "read", noted)
    assert sorted((each.case_id, each.n) for each in read(account).transitions) == [
        ("long-1", 1), ("long-1", 2), ("long-1", 3),
    ]  # fmt: skip
    assert len(opened) == 3


def test_a_case_whose_beginning_is_lost_is_read_as_far_as_it_is_there(account: Account) -> None:
    account.record_transitions(step(2, "applied", "10-20"), step(3, "ineffective", "11-11"))
    (account.cases / "dt=2026-10-19").mkdir()
    (account.cases / "dt=2026-10-19" / f"{CASE}-1.json").write_text("{")
    (account.cases / "dt=2026-11-11" / "README.txt").write_text("{}")
    found = read(account)
    assert sorted(each.n for each in found.transitions) == [2, 3]
    assert found.unreadable == 1
    assert found.since == date(2026, 11, 4)


# Odd ones.

SEEN = {"first_at": "11-10 08:00", "last_at": "11-10 08:10"}
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["\ud800", "9" * 5_000, "2026-11-10", "2026-11-10T10:00:00"])
    | st.sampled_from(["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", *State]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def closed(**fields: Any) -> dict[str, Any]:
    return transition(2, "closed", "11-10 09:00", **SEEN) | {"from": "watching"} | fields


@pytest.mark.parametrize(
    "odd",
    [
        {"at": "2026-11-10T09:00:00"},
        {"reason": ["symptom_gone"]},
        {"reason": None},
        {"evidence": {"first_at": "2026-11-10T08:00:00", "last_at": "2026-11-10T08:10:00Z"}},
    ],
    ids=lambda odd: next(iter(odd)),
)
def test_an_odd_transition_is_none(odd: dict[str, Any]) -> None:
    assert read_transition(json.dumps(closed()).encode()) is not None
    assert read_transition(json.dumps(closed(**odd)).encode()) is None


def _taken(*documents: object) -> None:
    """By the nightly job and by the week."""
    contents = [json.dumps(each).encode() for each in documents]
    transitions = [each for each in map(read_transition, contents) if each]
    rows, found = case_rows(transitions), lives(transitions)
    assert len(rows) == len(found)
    json.dumps([reached_a_person(days_of(WEEK), found), scanned(days_of(WEEK), found)])
    for each in found:
        assert each.outcome
        steps_of(each.newest)


@given(st.sampled_from(sorted(closed())), JSON, st.sampled_from(State))
@example("reason", ["symptom_gone"], State.CLOSED)
@example("at", "2026-11-10T09:00:00", State.CLOSED)
def test_any_value_in_any_field_stops_nothing(field: str, odd: object, state: State) -> None:
    opening = transition(1, "escalated", "11-10 08:30", notified=True, **SEEN)
    document = closed(to=state)
    _taken(document | {field: odd})
    _taken(opening, document, document | {field: odd})


@given(st.dictionaries(st.sampled_from(sorted(closed())), JSON) | JSON)
def test_any_document_stops_nothing(document: object) -> None:
    _taken(document)
