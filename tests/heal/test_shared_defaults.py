"""Queues that share one wrong setting are proposed once, and fixed one first, then the rest."""

from __future__ import annotations

import pytest
from msgspec import structs

from mendq.model.limits import Limits
from tests.account.account import Account
from tests.heal.operators import move_case, send_decision
from tests.heal.shared_defaults import (
    RIGHT,
    WRONG,
    follow_up_cases,
    list_case_states,
    load_case,
    make_sharing_dlqs,
    propose_shared_default,
    read_retentions,
    scan_and_heal,
    wait_until_first_is_verified,
)
from tests.scan.scanner import Scanner, scanner

__all__ = ["scanner"]


def approve(account: Account, queue_arn: str) -> dict[str, object]:
    return send_decision(account, "approve", load_case(account, queue_arn).case_id)


def test_three_queues_with_one_wrong_value_are_proposed_one_by_one(scanner: Scanner) -> None:
    """So few are a coincidence."""
    dlq_arns = make_sharing_dlqs(scanner, 3)
    scan_and_heal(scanner)
    assert list_case_states(scanner.account, dlq_arns) == ["proposed"] * 3
    assert len(scanner.account.pages("info")) == 3
    assert all(load_case(scanner.account, arn).shared_default is None for arn in dlq_arns)


def test_four_queues_with_different_wrong_values_are_proposed_one_by_one(scanner: Scanner) -> None:
    dlq_arns = make_sharing_dlqs(scanner)
    scanner.account.set(dlq_arns[3], MessageRetentionPeriod="86401")
    scanner.account.later(hours=1)
    scan_and_heal(scanner)
    assert len(scanner.account.pages("info")) == 4
    assert all(load_case(scanner.account, arn).shared_default is None for arn in dlq_arns)


def test_four_queues_with_one_wrong_value_get_a_case_each_and_one_notification(
    scanner: Scanner,
) -> None:
    dlq_arns = make_sharing_dlqs(scanner)
    scan_and_heal(scanner)
    account = scanner.account
    cases = [load_case(account, arn) for arn in dlq_arns]
    assert [str(case.state) for case in cases] == ["proposed"] * 4
    assert {case.shared_default.first_case_id for case in cases if case.shared_default} == {
        cases[0].case_id
    }
    assert read_retentions(account, dlq_arns) == [WRONG] * 4
    ((subject, text),) = account.pages("info")
    assert "a-dlq and 3 more" in subject
    for name in ("a-dlq", "b-dlq", "c-dlq", "d-dlq"):
        assert name in text
    assert f"mendq approve {cases[0].case_id}" in text


def test_shared_default_is_only_proposed_in_mode_heal(scanner: Scanner) -> None:
    """Alone, each of these queues would be fixed without a person."""
    dlq_arns = make_sharing_dlqs(scanner, tag="heal")
    scan_and_heal(scanner)
    assert list_case_states(scanner.account, dlq_arns) == ["proposed"] * 4
    assert read_retentions(scanner.account, dlq_arns) == [WRONG] * 4


def test_observed_queue_is_left_out_of_a_shared_default_and_named(scanner: Scanner) -> None:
    dlq_arns = make_sharing_dlqs(scanner, 5)
    scanner.account.tag(dlq_arns[4], mendq="observe")
    scan_and_heal(scanner)
    account = scanner.account
    assert list_case_states(account, dlq_arns) == ["proposed"] * 4 + ["observed"]
    shared_default = load_case(account, dlq_arns[0]).shared_default
    assert shared_default is not None
    assert dlq_arns[4] not in shared_default.queue_arns
    ((_, text),) = account.pages("info")
    assert "Left out: e-dlq (Mendq may only observe it)" in text


def test_queue_whose_value_a_person_set_is_left_out_of_a_shared_default_and_named(
    scanner: Scanner,
) -> None:
    account = scanner.account
    dlq_arns = make_sharing_dlqs(scanner, 5)
    for dlq_arn in dlq_arns[:4]:
        account.tag(dlq_arn, mendq="off")
    account.tag(dlq_arns[4], mendq="heal")
    scan_and_heal(scanner)
    assert read_retentions(account, dlq_arns[4:]) == [RIGHT]
    account.set(dlq_arns[4], MessageRetentionPeriod=WRONG)
    follow_up_cases(account, hours=8)
    assert list_case_states(account, dlq_arns[4:]) == ["overridden"]
    move_case(account, load_case(account, dlq_arns[4]), "closed")
    for dlq_arn in dlq_arns[:4]:
        account.tag(dlq_arn, mendq="propose")
    account.later(days=1)
    scan_and_heal(scanner)
    shared_default = load_case(account, dlq_arns[0]).shared_default
    assert shared_default is not None
    assert shared_default.queue_arns == tuple(dlq_arns[:4])
    assert "Left out: e-dlq (someone else set its value)" in account.pages("info")[-1][1]
    assert read_retentions(account, dlq_arns[4:]) == [WRONG]


def test_one_approval_fixes_the_first_queue_and_the_others_follow_once_it_is_verified(
    scanner: Scanner,
) -> None:
    account = scanner.account
    dlq_arns = propose_shared_default(scanner)
    assert approve(account, dlq_arns[0])["state"] == "applied"
    assert list_case_states(account, dlq_arns) == ["applied"] + ["approved"] * 3
    for _ in range(6):
        follow_up_cases(account, hours=1)
    assert read_retentions(account, dlq_arns) == [RIGHT] + [WRONG] * 3
    assert list_case_states(account, dlq_arns) == ["applied"] + ["approved"] * 3
    pages_before = len(account.pages("info"))
    wait_until_first_is_verified(account, dlq_arns[0])
    follow_up_cases(account, minutes=6)
    assert read_retentions(account, dlq_arns) == [RIGHT] * 4
    assert list_case_states(account, dlq_arns)[1:] == ["applied"] * 3
    assert len(account.pages("info")) == pages_before == 1, "the expected wait is not reported"


def test_approved_shared_default_of_five_queues_is_fixed_and_is_no_mass_symptom(
    scanner: Scanner,
) -> None:
    """Without the approval, four queues within an hour would be a mass symptom."""
    account = scanner.account
    dlq_arns = propose_shared_default(scanner, 5)
    approve(account, dlq_arns[0])
    wait_until_first_is_verified(account, dlq_arns[0])
    follow_up_cases(account, minutes=6)
    assert read_retentions(account, dlq_arns) == [RIGHT] * 5


def test_approvals_of_a_shared_default_outlast_the_first_fix_that_is_verified_after_days(
    scanner: Scanner,
) -> None:
    account = scanner.account
    dlq_arns = propose_shared_default(scanner)
    approve(account, dlq_arns[0])
    follow_up_cases(account, minutes=6)
    account.later(days=4)
    scan_and_heal(scanner)
    wait_until_first_is_verified(account, dlq_arns[0])
    follow_up_cases(account, minutes=6)
    assert read_retentions(account, dlq_arns) == [RIGHT] * 4


def test_approval_of_a_following_case_alone_is_refused_and_changes_nothing(
    scanner: Scanner,
) -> None:
    account = scanner.account
    dlq_arns = propose_shared_default(scanner)
    first_case_id = load_case(account, dlq_arns[0]).case_id
    answer = approve(account, dlq_arns[1])
    assert answer["error"] == "shared_default"
    assert f"mendq approve {first_case_id}" in str(answer["reason"])
    assert list_case_states(account, dlq_arns) == ["proposed"] * 4
    assert read_retentions(account, dlq_arns) == [WRONG] * 4


@pytest.mark.parametrize("state", ["escalated", "ineffective", "overridden"])
def test_harm_on_the_first_queue_ends_the_other_cases_unwritten_and_silently(
    scanner: Scanner, state: str
) -> None:
    account = scanner.account
    dlq_arns = propose_shared_default(scanner)
    approve(account, dlq_arns[0])
    move_case(account, load_case(account, dlq_arns[0]), state)
    pages_before = account.pages("info")
    for dlq_arn in dlq_arns[1:]:
        account.later(minutes=6)
        follow_up_cases(account, minutes=6)
        case = load_case(account, dlq_arn)
        assert (str(case.state), case.code) == ("expired", "shared_default_stopped")
    assert read_retentions(account, dlq_arns[1:]) == [WRONG] * 3
    assert [page for page in account.pages("info") if page not in pages_before] == []


def test_harm_on_a_later_queue_ends_the_cases_that_are_not_written_yet(scanner: Scanner) -> None:
    account = scanner.account
    account.settings = structs.replace(account.settings, limits=Limits(writes_per_minute=1))
    dlq_arns = propose_shared_default(scanner)
    approve(account, dlq_arns[0])
    wait_until_first_is_verified(account, dlq_arns[0])
    follow_up_cases(account, minutes=6)
    written = [arn for arn in dlq_arns[1:] if str(load_case(account, arn).state) == "applied"]
    assert len(written) == 1, "one write per minute"
    move_case(account, load_case(account, written[0]), "escalated")
    for _ in range(3):
        follow_up_cases(account, minutes=6)
    assert sorted(list_case_states(account, dlq_arns[1:])) == ["escalated", "expired", "expired"]
    assert sorted(read_retentions(account, dlq_arns)) == sorted([RIGHT, RIGHT, WRONG, WRONG])


def test_writes_of_a_shared_default_keep_within_the_writes_per_minute(scanner: Scanner) -> None:
    account = scanner.account
    account.settings = structs.replace(account.settings, limits=Limits(writes_per_minute=2))
    dlq_arns = propose_shared_default(scanner, 5)
    approve(account, dlq_arns[0])
    wait_until_first_is_verified(account, dlq_arns[0])
    follow_up_cases(account, minutes=6)
    assert read_retentions(account, dlq_arns).count(RIGHT) == 3
    follow_up_cases(account, minutes=6)
    assert read_retentions(account, dlq_arns) == [RIGHT] * 5


def test_queue_that_changed_or_lost_its_mode_meanwhile_is_skipped_and_the_others_follow(
    scanner: Scanner,
) -> None:
    account = scanner.account
    dlq_arns = propose_shared_default(scanner)
    approve(account, dlq_arns[0])
    account.set(dlq_arns[1], MessageRetentionPeriod="90000")
    account.tag(dlq_arns[2], mendq="off")
    wait_until_first_is_verified(account, dlq_arns[0])
    for _ in range(3):
        follow_up_cases(account, minutes=6)
    assert read_retentions(account, dlq_arns) == [RIGHT, "90000", WRONG, RIGHT]
    codes = [load_case(account, arn).code for arn in dlq_arns]
    assert codes == ["", "plan_changed", "not_any_more", ""]


def test_declining_the_first_case_declines_all_and_declining_another_leaves_only_that_out(
    scanner: Scanner,
) -> None:
    account = scanner.account
    dlq_arns = propose_shared_default(scanner)
    send_decision(account, "decline", load_case(account, dlq_arns[3]).case_id)
    assert list_case_states(account, dlq_arns) == ["proposed"] * 3 + ["declined"]
    send_decision(account, "decline", load_case(account, dlq_arns[0]).case_id)
    assert list_case_states(account, dlq_arns) == ["declined"] * 4
    assert read_retentions(account, dlq_arns) == [WRONG] * 4


def test_declined_queue_is_not_written_if_the_others_are_approved(scanner: Scanner) -> None:
    account = scanner.account
    dlq_arns = propose_shared_default(scanner)
    send_decision(account, "decline", load_case(account, dlq_arns[3]).case_id)
    approve(account, dlq_arns[0])
    wait_until_first_is_verified(account, dlq_arns[0])
    follow_up_cases(account, minutes=6)
    assert read_retentions(account, dlq_arns) == [RIGHT] * 3 + [WRONG]


def test_freeze_holds_all_queues_of_a_shared_default(scanner: Scanner) -> None:
    account = scanner.account
    dlq_arns = propose_shared_default(scanner)
    account.freeze()
    approve(account, dlq_arns[0])
    follow_up_cases(account, minutes=6)
    assert list_case_states(account, dlq_arns) == ["approved"] * 4
    assert read_retentions(account, dlq_arns) == [WRONG] * 4
