"""Reading the case bucket: queue listings, transitions, outcomes, malformed files."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from analytics import storage
from analytics.cases import (
    CaseFiles,
    CaseTimeline,
    Transition,
    group_transitions_by_case,
    load_case_files,
    read_steps,
    read_transition,
    shorten,
)
from analytics.days import Days, parse_week_days, to_microseconds
from analytics.incidents import CaseIndex, ListedMute, ScanListing
from analytics.nightly import derive_findings_root, read_queue_listing, read_queue_listings
from analytics.storage import AccountsStorage, FolderStorage, RootUnusable, StorageEntry
from analytics.week_cases import (
    find_candidates_for_heal,
    make_notified_case_fields,
    make_open_case_fields,
    sum_harmed_messages,
)
from mendq.cases.finding import ScanResult, add_managed_queues
from mendq.model.lifecycle import QUEUE_GONE_REASON, QUEUE_UNMANAGED_REASON
from mendq.model.mutes import MuteUse
from mendq.model.state import State
from tests.analytics.builders import (
    NightlyFolders,
    make_scan_document,
    make_time,
    make_transition,
    write_scan,
)
from tests.analytics.week_builders import WEEK, make_timeline

NOON = datetime(2026, 11, 10, 12, 1, 2, tzinfo=UTC)
CASE = "visibility_timeout_too_short-0123456789ab"


def test_queue_listing_of_a_scan_is_read_as_the_scan_wrote_it() -> None:
    written = json.dumps(make_scan_document(NOON, "b", "a", whole=False)).encode()
    assert read_queue_listing(written) == ScanListing(
        to_microseconds(NOON), ("a", "b"), is_complete=False
    )


def test_queue_listing_has_the_mutes_that_the_scan_wrote() -> None:
    mute_use = MuteUse("orders-*", "dlq_missing", date(2027, 6, 30), checked=3)
    document = add_managed_queues(
        ScanResult(mute_uses=(mute_use,)).document(NOON), ["a"], is_listing_complete=True
    )
    listing = read_queue_listing(json.dumps(document).encode())
    assert listing is not None
    assert listing.mutes == (ListedMute("orders-*", "dlq_missing", date(2027, 6, 30)),)


@pytest.mark.parametrize(
    "mutes", [None, "all", 7, [{}], [{"queue": "a", "symptom": "b", "until": "soon"}]]
)
def test_queue_listing_with_broken_mutes_still_lists_its_queues(mutes: object) -> None:
    document = {**make_scan_document(NOON, "a"), "mutes": mutes}
    assert read_queue_listing(json.dumps(document).encode()) == ScanListing(
        to_microseconds(NOON), ("a",), is_complete=True
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("at", moment) for moment in (None, "noon")),
        *(("managed", arns) for arns in (None, [7], ["\ud800"], "", "arn", {}, {"arn": 1})),
    ],
)
def test_queue_listing_with_a_malformed_time_or_queue_list_is_ignored(
    field: str, value: object
) -> None:
    assert read_queue_listing(json.dumps(make_scan_document(NOON)).encode()) is not None
    assert (
        read_queue_listing(json.dumps({**make_scan_document(NOON), field: value}).encode()) is None
    )


@pytest.mark.parametrize(
    ("flag", "is_complete"), [(True, True), (False, False), ("yes", False), (1, False)]
)
def test_queue_listing_is_complete_only_if_its_flag_is_true(
    flag: object, *, is_complete: bool
) -> None:
    document = {**make_scan_document(NOON), "managed_whole": flag}
    listing = read_queue_listing(json.dumps(document).encode())
    assert listing is not None
    assert listing.is_complete is is_complete


@pytest.mark.parametrize(
    ("case_root", "findings_root"),
    [
        ("s3://bucket/some/cases/", "s3://bucket/some/findings"),
        ("cases", "findings"),
        ("s3://bucket", None),
        ("s3://bucket/", None),
    ],
)
def test_findings_root_is_the_folder_beside_the_cases_and_none_if_the_cases_root_is_a_whole_bucket(
    case_root: str, findings_root: str | None
) -> None:
    assert derive_findings_root(case_root) == findings_root


def test_queue_listings_are_read_from_one_day_before_to_eight_days_after_the_night(
    tmp_path: Path,
) -> None:
    for day in ("11-08", "11-09", "11-18", "11-19"):
        write_scan(tmp_path, make_time(f"{day} 12:00"), day)
    noon = Days(NOON.date(), NOON.date())
    found = read_queue_listings(FolderStorage(str(tmp_path / "findings")), noon)
    assert [listing.queue_arns for listing in found] == [("11-09",), ("11-18",)]


# Transitions that are read.


def make_step(n: int, state: str, day: str, case_id: str = CASE) -> dict[str, Any]:
    moment = f"{day} 10:00:00"
    return make_transition(n, state, moment, first_at=moment, last_at=moment, case_id=case_id)


def load_cases(account: NightlyFolders) -> CaseFiles:
    day = date(2026, 11, 12)
    return load_case_files(FolderStorage(str(account.cases)), Days(day, day))


def list_transition_numbers(found: CaseFiles) -> dict[str, list[int]]:
    numbers = {}
    for timeline in found.timelines:
        case_id = timeline.newest_transition.case_id
        numbers[case_id] = [transition.n for transition in timeline.transitions]
    return numbers


def test_case_with_a_recent_transition_is_read_from_its_first_transition_weeks_earlier(
    account: NightlyFolders,
) -> None:
    account.record_transitions(
        make_step(1, "applied", "10-20", "long-1"),
        make_step(2, "unverified", "10-21", "long-1"),
        make_step(3, "ineffective", "11-11", "long-1"),
    )
    assert list_transition_numbers(load_cases(account)) == {"long-1": [1, 2, 3]}


def test_case_files_of_over_eight_days_ago_are_not_read_without_a_newer_transition(
    account: NightlyFolders,
) -> None:
    account.record_transitions(
        make_step(1, "applied", "10-20", "long-1"),
        make_step(1, "observed", "11-03", "over-1"),
        make_step(2, "ineffective", "11-11", "long-1"),
    )
    (account.cases / "dt=2026-10-20" / "other-1-1.json").write_text("{")
    found = load_cases(account)
    assert found.first_fully_read_day == date(2026, 11, 4)
    assert list_transition_numbers(found).keys() == {"long-1"}
    assert found.unreadable_file_count == 0


class BrokenFolder(FolderStorage):
    """A folder of cases in which the day 2026-11-11 cannot be listed."""

    def list_entries(self, folder: str) -> list[StorageEntry]:
        if folder == "dt=2026-11-11":
            raise RootUnusable("503 Slow Down")
        return super().list_entries(folder)


def test_load_case_files_reads_an_account_up_to_a_day_that_cannot_be_listed_and_reports_it(
    account: NightlyFolders,
) -> None:
    account.record_transitions(
        make_step(1, "applied", "11-10", "case-1"), make_step(2, "verified", "11-11", "case-1")
    )
    other = "999999999999"
    owner = json.loads(next(account.cases.glob("*/case-1-1.json")).read_text())["queue_arn"]
    said: list[str] = []
    roots = {
        owner.split(":")[4]: BrokenFolder(str(account.cases)),
        other: FolderStorage(str(account.cases.with_name("no-cases"))),
    }
    day = date(2026, 11, 12)
    found = load_case_files(AccountsStorage(roots, said.append), Days(day, day))
    assert list_transition_numbers(found) == {"case-1": [1]}
    assert found.unreadable_file_count == 0
    assert said == [f"the cases of {owner.split(':')[4]} are left out: 503 Slow Down"]


def _put_cases_of(account: NightlyFolders, account_id: str, *names: str) -> FolderStorage:
    """Write a case for each name to the case bucket of an account."""
    folder = account.folder / f"cases-{account_id}"
    for name in names:
        step = make_step(1, "observed", "11-11", name)
        step["queue_arn"] = f"arn:aws:sqs:us-east-1:{account_id}:orders"
        path = folder / "dt=2026-11-11" / f"{name}-1.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(step))
    return FolderStorage(str(folder))


@pytest.mark.parametrize(
    ("limit_name", "limit"),
    [("MAXIMUM_FILES_OF_ACCOUNT", 2), ("MAXIMUM_BYTES_OF_ACCOUNT", 1_000)],
)
def test_account_above_its_limit_of_case_files_or_bytes_loses_only_its_own_and_the_log_names_it(
    account: NightlyFolders, monkeypatch: pytest.MonkeyPatch, limit_name: str, limit: int
) -> None:
    monkeypatch.setattr(storage, limit_name, limit)
    greedy, honest = "1" * 12, "2" * 12
    names = [f"many-{number}" for number in range(5)]
    roots = {
        greedy: _put_cases_of(account, greedy, *names),
        honest: _put_cases_of(account, honest, "case-1"),
    }
    said: list[str] = []
    day = date(2026, 11, 12)
    found = load_case_files(AccountsStorage(roots, said.append), Days(day, day))
    read_names = [*list_transition_numbers(found)]
    assert "case-1" in read_names
    assert 1 <= len(read_names) - 1 < 5
    assert found.unreadable_file_count == 5 - (len(read_names) - 1)
    [line] = said
    assert line.startswith(f"further case files of {greedy} are left out: ")


class RefusedCase(FolderStorage):
    """A case bucket with a file that only its account can decrypt."""

    def read(self, path: str, maximum_bytes: int = -1) -> bytes | None:
        if "locked" in path:
            raise RootUnusable("AccessDenied")
        return super().read(path, maximum_bytes)


def test_case_file_that_s3_refuses_to_read_counts_as_unreadable_and_the_others_are_read(
    account: NightlyFolders,
) -> None:
    owner = "1" * 12
    root = RefusedCase(str(_put_cases_of(account, owner, "case-1", "locked-1").root))
    day = date(2026, 11, 12)
    found = load_case_files(AccountsStorage({owner: root}, print), Days(day, day))
    assert list_transition_numbers(found) == {"case-1": [1]}
    assert found.unreadable_file_count == 1


def test_case_with_an_unreadable_first_transition_keeps_its_later_transitions(
    account: NightlyFolders,
) -> None:
    account.record_transitions(
        make_step(2, "applied", "10-20"), make_step(3, "ineffective", "11-11")
    )
    (account.cases / "dt=2026-10-19").mkdir()
    (account.cases / "dt=2026-10-19" / f"{CASE}-1.json").write_text("{")
    assert list_transition_numbers(load_cases(account)) == {CASE: [2, 3]}


def test_case_file_of_a_recent_day_that_holds_no_transition_is_counted_as_unreadable(
    account: NightlyFolders,
) -> None:
    account.record_transitions(make_step(1, "ineffective", "11-11"))
    (account.cases / "dt=2026-11-11" / "README.txt").write_text("[" * 100_000)
    found = load_cases(account)
    assert list_transition_numbers(found) == {CASE: [1]}
    assert found.unreadable_file_count == 1


# Outcomes of cases.

DAYS = parse_week_days(WEEK)
OUTCOMES = yaml.safe_load(Path(__file__).with_name("outcomes.yaml").read_text())
SAME_WORD = OUTCOMES["same_word"].split()


def make_transitions(words: str) -> list[Transition]:
    """Make the transitions of a case. A state that ends in `!` sent a notification."""
    seen = {"first_at": "11-10 09:00", "last_at": "11-10 09:05"}
    return [
        Transition.from_document(
            make_transition(n, state.strip("!"), f"11-10 10:{n:02}", notified="!" in state, **seen)
        )
        for n, state in enumerate(words.split(), 1)
    ]


@pytest.mark.parametrize("paging", ["", "!"], ids=["silent", "notified"])
@pytest.mark.parametrize("state", SAME_WORD)
def test_outcome_of_a_case_with_one_state_is_that_state_whether_or_not_it_notified_people(
    state: str, paging: str
) -> None:
    assert CaseTimeline(tuple(make_transitions(f"{state}{paging}"))).outcome == state


@pytest.mark.parametrize(("states", "word"), OUTCOMES["outcomes"].items())
def test_case_outcome_follows_from_all_its_states_and_from_which_of_them_notified_people(
    states: str, word: str
) -> None:
    assert CaseTimeline(tuple(make_transitions(states))).outcome == word


@pytest.mark.parametrize("because", [QUEUE_GONE_REASON, QUEUE_UNMANAGED_REASON])
@pytest.mark.parametrize(("states", "word"), OUTCOMES["left_behind"].items())
def test_case_closed_because_its_queue_is_gone_or_unmanaged_keeps_the_outcome_that_it_had_before(
    states: str, word: str, because: str
) -> None:
    *before, closing = make_transitions(f"{states} closed")
    left = replace(closing, came_from=before[-1].state, reason=because)
    assert CaseTimeline((*before, left)).outcome == word


def test_transitions_in_any_file_order_give_one_timeline_in_order() -> None:
    transitions = make_transitions("applied verified watching")
    (timeline,) = group_transitions_by_case([transitions[2], transitions[0], transitions[1]])
    assert timeline.transitions == tuple(transitions)


def test_seconds_to_heal_run_from_the_first_failed_call_to_the_first_verified_fix() -> None:
    applied, verified, watching = make_transitions("applied verified watching")
    first_failed_call = make_time("11-10 09:00")
    seconds = (verified.at - first_failed_call).total_seconds()
    assert CaseTimeline((applied, verified, watching)).seconds_to_heal == seconds


def test_case_that_was_never_fixed_or_fixed_before_it_failed_has_no_seconds_to_heal() -> None:
    applied, verified = make_transitions("applied verified")
    verified_early = replace(verified, at=verified.at - timedelta(days=1))
    assert CaseTimeline(tuple(make_transitions("observed"))).seconds_to_heal is None
    assert CaseTimeline((applied, verified_early)).seconds_to_heal is None


@pytest.mark.parametrize(("states", "ended_by"), OUTCOMES["ended_by"].items())
def test_case_ends_at_the_first_final_state_after_which_no_open_state_follows(
    states: str, ended_by: int | None
) -> None:
    transitions = make_transitions(states)
    ended_at = ended_by and transitions[ended_by - 1].at
    assert CaseTimeline(tuple(transitions)).ended_at == ended_at


def test_case_without_its_first_transition_opens_at_its_first_failed_call() -> None:
    older = make_timeline(("escalated", "11-10 09:00"), first_n=4)
    assert older.opening_transition is None
    assert older.opened_at == make_time("11-08 08:00")


def test_notifications_of_a_week_run_from_monday_midnight_utc_to_before_the_next_monday() -> None:
    moments = ("11-08 23:59:59", "11-09 00:00", "11-15 23:59:59", "11-16 00:00")
    edges = make_timeline(*(("escalated", moment) for moment in moments), notified=(1, 2, 3, 4))
    assert [notification.n for notification in edges.list_notifications(DAYS)] == [2, 3]


@pytest.mark.parametrize("notified", [1, "true", None, False])
def test_transition_counts_as_notified_only_if_its_flag_is_true(notified: Any) -> None:
    transition = make_timeline(("escalated", "11-10 09:00"), notified=(1,)).newest_transition
    unsure = replace(transition, notified=notified)
    assert CaseTimeline((transition,)).list_notifications(DAYS) == [transition]
    assert CaseTimeline((unsure,)).list_notifications(DAYS) == []


@pytest.mark.parametrize(("failed_calls", "expected"), [(3, False), (False, False), (0, True)])
def test_case_counts_as_opened_by_a_scan_only_if_its_failed_calls_are_the_number_zero(
    failed_calls: object, expected: bool
) -> None:
    case = make_timeline(("escalated", "11-10 09:00")).newest_transition
    evidence = {**case.evidence, "failed_calls": failed_calls}
    assert CaseTimeline((replace(case, evidence=evidence),)).is_opened_without_calls is expected


def test_shorten_keeps_a_short_text_and_cuts_a_longer_one_at_the_limit() -> None:
    greek = "\N{GREEK SMALL LETTER ALPHA}" * 10
    for whole in ("ten letter", "", greek):
        assert shorten(whole, 10) == whole
    assert shorten("eleven lett", 10) == "eleven ..."


@pytest.mark.parametrize("value", [None, 7, ["a"]])
def test_shorten_gives_an_empty_text_for_a_value_that_is_no_text(value: object) -> None:
    assert shorten(value, 10) == ""


def test_shorten_escapes_lone_surrogates_and_counts_the_escaped_characters() -> None:
    assert shorten("\ud800", 10) == "\\ud800"
    assert shorten("\ud800\ud800", 10) == "\\ud800\\..."


# Malformed transitions.

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


def make_closed_transition(**fields: Any) -> dict[str, Any]:
    return make_transition(2, "closed", "11-10 09:00", **SEEN) | {"from": "watching"} | fields


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
def test_transition_with_a_malformed_time_or_reason_is_ignored(odd: dict[str, Any]) -> None:
    assert read_transition(json.dumps(make_closed_transition()).encode()) is not None
    assert read_transition(json.dumps(make_closed_transition(**odd)).encode()) is None


def test_malformed_steps_of_a_transition_are_skipped_and_its_other_steps_read() -> None:
    transition = make_timeline(("applied", "11-10 09:00")).newest_transition
    odd: Any = (None, "VisibilityTimeout", {"attribute": "A", "before": 1, "after": "2"}, {})
    steps = read_steps(transition)
    assert steps
    assert read_steps(replace(transition, steps=(*odd, *transition.steps))) == steps


def _process_transitions(*documents: object) -> None:
    """Process the documents as the nightly job and the weekly job do."""
    contents = [json.dumps(document).encode() for document in documents]
    found = group_transitions_by_case(
        transition for transition in map(read_transition, contents) if transition
    )
    said: list[object] = [make_notified_case_fields(DAYS, found), make_open_case_fields(found, {})]
    said.append(find_candidates_for_heal(DAYS, found))
    json.dumps(
        [
            *said,
            sum_harmed_messages({timeline.newest_transition.case_id for timeline in found}, found),
        ]
    )
    known = CaseIndex.build(found, [])
    noon = to_microseconds(NOON)
    for timeline in found:
        burst: dict[str, Any] = {
            "queue_arn": timeline.newest_transition.queue_arn,
            "symptom": timeline.newest_transition.symptom,
        }
        burst |= {"first_failure": noon, "last_failure": noon, "enough_evidence": True}
        burst |= {"account": "", "region": "", "ignored": None, "is_own_look": False}
        assert known.make_incident_of_burst(burst)["outcome"]
        assert timeline.outcome
        read_steps(timeline.newest_transition)


@given(st.sampled_from(sorted(make_closed_transition())), JSON, st.sampled_from(State))
@example("reason", ["symptom_gone"], State.CLOSED)
@example("at", "2026-11-10T09:00:00", State.CLOSED)
def test_no_value_in_a_transition_field_stops_the_nightly_or_weekly_job(
    field: str, odd: object, state: State
) -> None:
    opening = make_transition(1, "escalated", "11-10 08:30", notified=True, **SEEN)
    document = make_closed_transition(to=state)
    _process_transitions(document | {field: odd})
    _process_transitions(opening, document, document | {field: odd})


@given(st.dictionaries(st.sampled_from(sorted(make_closed_transition())), JSON) | JSON)
def test_no_json_document_in_place_of_a_transition_stops_the_nightly_or_weekly_job(
    document: object,
) -> None:
    _process_transitions(document)
