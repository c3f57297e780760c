"""What a sweep found goes the way of failed calls: evidence, cases, pages, repeats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from functions.aws.follow_up import follow_up
from functions.catalogue import CATALOGUE
from functions.catalogue.dead_letters_expire_first import DEAD_LETTERS_EXPIRE_FIRST
from functions.healing.mode import Mode
from tests.functions.aws.conftest import Account
from tests.functions.aws.operators import OWNERS, case_of, desk_of, say
from tests.functions.aws.sweeping import Sweeping, an_hour_on, sweeping
from tests.functions.aws.test_sweep_round import dead_letters

NAME = DEAD_LETTERS_EXPIRE_FIRST.name


@pytest.fixture
def swept() -> Iterator[Sweeping]:
    with sweeping() as made:
        yield made


def round_and_heal(swept: Sweeping) -> list[str]:
    """The next hour's round, and what heal made of it: states, or codes of refusals."""
    an_hour_on(swept.account)
    swept.sweep([DEAD_LETTERS_EXPIRE_FIRST])
    outcomes = [each for healed in swept.heal() for each in healed.mended.values()]
    assert all(not healed.errors for healed in swept.heal())
    return [
        str(each.case.state) if each.case else each.refusal.code if each.refusal else "nothing"
        for each in outcomes
    ]


def retention(account: Account, queue: str) -> str:
    return account.attributes(queue)["MessageRetentionPeriod"]


def test_a_finding_is_evidence_by_itself_and_names_no_failed_call(swept: Sweeping) -> None:
    queue = dead_letters(swept)
    assert round_and_heal(swept) == ["applied"]
    evidence = swept.account.transitions()[0]["evidence"]
    assert (evidence["failed_calls"], evidence["principals"]) == (0, [])
    assert retention(swept.account, queue) == "1209600"
    assert round_and_heal(swept) == [], "it is not found again"


def test_in_mode_propose_it_is_proposed_once_and_nothing_is_written(swept: Sweeping) -> None:
    queue = dead_letters(swept, tag="propose")
    assert round_and_heal(swept) == ["proposed"]
    assert round_and_heal(swept) == [], "its case waits for a person"
    assert retention(swept.account, queue) == "86400"
    assert len(swept.account.pages("info")) == 1


def noted(swept: Sweeping, queue: str) -> list[bool]:
    view = swept.account.run().ledger.look(queue, NAME, ())
    return [each.measured for each in view.failures.sightings]


def test_while_it_is_found_an_open_case_hears_of_it_once_a_day(swept: Sweeping) -> None:
    queue = dead_letters(swept, tag="propose")
    swept.account.settings = replace(
        swept.account.settings,
        timing=replace(swept.account.settings.timing, proposal_hours=72),
    )
    assert round_and_heal(swept) == ["proposed"]
    assert [round_and_heal(swept) for _ in range(23)] == [[]] * 23
    assert noted(swept, queue) == []
    assert round_and_heal(swept) == ["case_already_open"]
    assert noted(swept, queue) == [True]


def test_what_is_told_again_of_a_waiting_case_is_not_measured(
    swept: Sweeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = dead_letters(swept, tag="propose")
    assert round_and_heal(swept) == ["proposed"]
    monkeypatch.setattr("functions.aws.look.gather", lambda *_: pytest.fail("it is billed"))
    swept.told = [{"found": [{"queue_arn": queue, "symptom": NAME}]}]
    (healed,) = swept.heal()
    refusals = [each.refusal.code for each in healed.mended.values() if each.refusal]
    assert (refusals, healed.errors) == (["case_already_open"], {})


def test_what_nobody_answered_is_not_proposed_again_for_a_month(swept: Sweeping) -> None:
    dead_letters(swept, tag="propose")
    assert round_and_heal(swept) == ["proposed"]
    swept.account.later(hours=25)
    assert follow_up(desk_of(swept.account), OWNERS, lambda: 60).errors == {}
    assert case_of(swept.account).state == "expired"
    for days in (1, 10, 17):
        swept.account.later(days=days)
        assert round_and_heal(swept) == ["said_already"]
    swept.account.later(days=3)
    assert round_and_heal(swept) == ["proposed"]
    assert len(swept.account.pages("info")) == 2


def test_in_mode_observe_it_is_written_down_once_a_day(swept: Sweeping) -> None:
    queue = dead_letters(swept, tag="observe")
    assert round_and_heal(swept) == ["observed"]
    assert [round_and_heal(swept) for _ in range(3)] == [["said_already"]] * 3
    swept.account.later(days=1)
    assert round_and_heal(swept) == ["observed"]
    assert retention(swept.account, queue) == "86400"


def test_what_a_person_declined_is_not_proposed_again_each_hour(swept: Sweeping) -> None:
    dead_letters(swept, tag="propose")
    round_and_heal(swept)
    assert say(swept.account, "decline", case_of(swept.account).case_id)["state"] == "declined"
    assert round_and_heal(swept) == ["said_already"]
    swept.account.later(days=6)
    assert round_and_heal(swept) == ["said_already"]
    swept.account.later(days=2)
    assert round_and_heal(swept) == ["proposed"]


def test_a_queue_that_was_just_changed_waits_and_nothing_is_kept_of_it(swept: Sweeping) -> None:
    queue = dead_letters(swept)
    an_hour_on(swept.account)
    swept.sweep([DEAD_LETTERS_EXPIRE_FIRST])
    swept.account.set_visibility(queue, 31)
    (healed,) = swept.heal()
    refusals = [each.refusal.code for each in healed.mended.values() if each.refusal]
    assert refusals == ["before_last_change"]
    assert (queue, f"evidence#{NAME}") not in swept.account.ledger_items(), "calls alone are kept"
    assert retention(swept.account, queue) == "86400"
    assert round_and_heal(swept) == ["applied"]


def test_a_freeze_holds_for_findings_too(swept: Sweeping) -> None:
    queue = dead_letters(swept)
    swept.account.clients.dynamodb.put_item(
        TableName="ledger",
        Item={"pk": {"S": "account"}, "sk": {"S": "freeze"}, "reason": {"S": "a test"}},
    )
    assert round_and_heal(swept) == ["refused"]
    assert retention(swept.account, queue) == "86400"


def test_a_queue_that_is_not_managed_any_more_is_left_alone(swept: Sweeping) -> None:
    queue = dead_letters(swept)
    an_hour_on(swept.account)
    swept.sweep([DEAD_LETTERS_EXPIRE_FIRST])
    swept.account.tag(queue, mendq="off")
    (healed,) = swept.heal()
    assert [each.refusal.code for each in healed.mended.values() if each.refusal] == ["not_managed"]
    assert retention(swept.account, queue) == "86400"


def test_settings_lower_what_a_finding_leads_to(swept: Sweeping) -> None:
    queue = dead_letters(swept)
    swept.account.settings = replace(swept.account.settings, autonomy={NAME: Mode.PROPOSE})
    assert round_and_heal(swept) == ["proposed"]
    assert retention(swept.account, queue) == "86400"


def test_heal_can_gather_whatever_an_entry_detects_by(swept: Sweeping) -> None:
    queue = dead_letters(swept)
    names = [each.name for each in CATALOGUE if each.plan and each.detection]
    swept.told = [{"found": [{"queue_arn": queue, "symptom": each}]} for each in names]
    assert [healed.errors for healed in swept.heal()] == [{}] * len(names)
