"""One round after another: what is found, who is told, and how often."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import cast

import pytest

from functions.aws.managed_queues import Listing, ManagedQueue
from functions.catalogue.consumer_failing import CONSUMER_FAILING
from functions.catalogue.dead_letters_expire_first import DEAD_LETTERS_EXPIRE_FIRST
from functions.catalogue.symptom import Detection, Found, Symptom
from functions.healing.daily_pace import NEW_FAULTS_A_DAY
from functions.healing.facts import Facts, Need
from functions.healing.limits import Limits
from functions.healing.plan import Refusal
from functions.healing.states import State
from functions.healing.sweeping import MOST_IN_A_CALL
from tests.functions.aws.sweeping import Sweeping, an_hour_on, consumed, sweeping

A_DAY = 86_400


@pytest.fixture
def swept() -> Iterator[Sweeping]:
    with sweeping() as made:
        yield made


def dead_letters(swept: Sweeping, name: str = "orders", tag: str | None = "heal") -> str:
    """A dead-letter queue that keeps letters no longer than its source does; its ARN."""
    arn = swept.account.queue(f"{name}-dlq", tag=tag, MessageRetentionPeriod=str(A_DAY))
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 5})
    source = {"MessageRetentionPeriod": str(4 * A_DAY), "RedrivePolicy": policy}
    swept.account.queue(name, tag=None, **source)
    swept.account.later(minutes=5)
    return arn


def slow(of_configuration: bool = False) -> Symptom:
    """Seen on every queue that was measured, or on every one."""
    return replace(
        DEAD_LETTERS_EXPIRE_FIRST,
        name="slow",
        steps=(),
        plan=lambda facts, _limits: Refusal("slow", facts.found, State.ESCALATED),
        needs=frozenset({Need.QUEUE}),
        detection=Detection(
            detect=lambda facts: (
                Found("it is slow") if of_configuration or facts.measured else None
            ),
            needs=frozenset({Need.QUEUE, *([] if of_configuration else [Need.MEASUREMENTS])}),
            of_configuration=of_configuration,
        ),
        detected=(),
        near_misses=(),
    )


def measured_queues(swept: Sweeping, how_many: int) -> list[str]:
    """Queues that were as they are for a day, of which CloudWatch knows something."""
    queues = [swept.account.queue(f"slow-{n:02}") for n in range(how_many)]
    swept.account.now = (swept.account.now + timedelta(days=2)).replace(hour=0, minute=30)
    for each in queues:
        swept.count(each, swept.account.now - timedelta(minutes=30), sent=1)
    return queues


def test_what_is_found_is_told_to_heal_and_healed(swept: Sweeping) -> None:
    queue = dead_letters(swept)
    done = swept.sweep([DEAD_LETTERS_EXPIRE_FIRST])
    assert done is not None
    assert (done.queues, done.failed) == (1, {}), "its source is not managed"
    assert swept.named() == [(queue, "dead_letters_expire_first")]
    (healed,) = swept.heal()
    assert healed.errors == {}
    assert swept.account.attributes(queue)["MessageRetentionPeriod"] == str(14 * A_DAY)
    (transition,) = swept.account.transitions()
    assert (transition["to"], transition["evidence"]["failed_calls"]) == ("applied", 0)


def test_a_sweep_itself_changes_nothing_and_opens_no_case(swept: Sweeping) -> None:
    queue = dead_letters(swept)
    before = swept.account.attributes(queue)
    swept.sweep()
    assert swept.account.attributes(queue) == before
    assert not [each for _, each in swept.account.ledger_items() if each.startswith("case#")]


def test_heal_finds_nothing_where_there_is_nothing_any_more(swept: Sweeping) -> None:
    queue = dead_letters(swept)
    swept.sweep([DEAD_LETTERS_EXPIRE_FIRST])
    swept.account.clients.sqs.set_queue_attributes(
        QueueUrl=swept.account.url(queue),
        Attributes={"MessageRetentionPeriod": str(5 * A_DAY)},
    )
    (healed,) = swept.heal()
    assert [each.refusal.code for each in healed.mended.values() if each.refusal] == ["not_found"]
    assert swept.account.attributes(queue)["MessageRetentionPeriod"] == str(5 * A_DAY)
    assert swept.account.transitions() == []


def test_a_round_is_made_once_an_hour(swept: Sweeping) -> None:
    dead_letters(swept)
    first = swept.sweep()
    swept.account.later(seconds=1)
    assert first is not None
    assert swept.sweep() is None
    assert len({told["symptom"] for one in swept.told for told in one["found"]}) == len(swept.told)
    an_hour_on(swept.account)
    assert swept.sweep() is not None


def test_another_sweep_under_way_is_left_alone(swept: Sweeping) -> None:
    dead_letters(swept)
    assert swept.desk().sweep_ledger.begin(swept.account.now)
    assert swept.sweep() is None
    swept.account.later(minutes=16)
    assert swept.sweep() is not None, "it has died"


def test_a_round_that_ran_out_of_time_is_resumed_where_it_stopped(
    swept: Sweeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("functions.aws.sweep.QUEUES_A_STRETCH", 2)
    for n in range(5):
        swept.account.queue(f"q-{n}")
    an_hour_on(swept.account)
    times = iter([900.0, 900.0, 100.0])
    swept.remaining_seconds = lambda: next(times, 100.0)
    symptoms = [slow(of_configuration=True)]
    first = swept.sweep(symptoms)
    assert first is not None
    assert (first.queues, first.after) == (4, "q-3")
    swept.remaining_seconds = lambda: 900.0
    swept.account.later(minutes=10)
    second = swept.sweep(symptoms)
    assert second is not None
    assert (second.queues, second.after) == (1, "q-4")
    document = swept.findings()
    assert document["queues_swept"] == 5
    assert [each["queue_arn"][-3:] for each in document["findings"]] == [f"q-{n}" for n in range(5)]
    assert [each[-3:] for each in document["managed"]] == [f"q-{n}" for n in range(5)]
    assert document["managed_whole"] is True
    swept.account.later(minutes=10)
    assert swept.sweep(symptoms) is None


def test_a_failed_hand_over_leaves_the_stretch_to_the_next_sweep(swept: Sweeping) -> None:
    dead_letters(swept)
    swept.heal_is_away = True
    with pytest.raises(Exception, match="heal could not be called"):
        swept.sweep([DEAD_LETTERS_EXPIRE_FIRST])
    swept.heal_is_away = False
    swept.account.later(minutes=16)
    assert swept.sweep([DEAD_LETTERS_EXPIRE_FIRST]) is not None
    assert len(swept.named()) == 1


def test_faults_of_configuration_are_told_ten_new_queues_a_day(swept: Sweeping) -> None:
    # In the morning: the three rounds are on one day.
    swept.account.now = swept.account.now.replace(hour=6)
    queues = [swept.account.queue(f"q-{n:02}") for n in range(25)]
    symptoms = [slow(of_configuration=True)]
    an_hour_on(swept.account)
    told = []
    for _ in range(3):
        swept.sweep(symptoms)
        told.append({arn for arn, _ in swept.named()})
        swept.told.clear()
        an_hour_on(swept.account)
    assert [len(each) for each in told] == [NEW_FAULTS_A_DAY] * 3
    assert told[0] == told[1] == told[2] == set(queues[:NEW_FAULTS_A_DAY])
    swept.account.later(days=1)
    swept.sweep(symptoms)
    assert {arn for arn, _ in swept.named()} == set(queues[: 2 * NEW_FAULTS_A_DAY])
    assert len(swept.findings()["findings"]) == 25, "all of them are reported"


def test_two_faults_of_a_queue_are_two_of_the_day(swept: Sweeping) -> None:
    for n in range(NEW_FAULTS_A_DAY):
        swept.account.queue(f"q-{n:02}")
    an_hour_on(swept.account)
    swept.sweep([slow(of_configuration=True), replace(slow(of_configuration=True), name="other")])
    assert len(swept.named()) == NEW_FAULTS_A_DAY


def test_what_many_show_by_measurement_is_a_mass_symptom(swept: Sweeping) -> None:
    queues = measured_queues(swept, MOST_IN_A_CALL + 5)
    symptoms = [slow()]
    done = swept.sweep(symptoms)
    assert done is not None
    assert {each.queue_arn for each in done.findings} == set(queues)
    assert len(swept.named()) == MOST_IN_A_CALL
    spread = swept.account.run().ledger.spread_to([], "slow", swept.account.now)
    assert len(spread) == len(queues), "heal sees how many there are"


def test_what_few_show_is_told_whole(swept: Sweeping) -> None:
    queues = measured_queues(swept, 3)
    swept.sweep([slow()])
    assert swept.named() == [(each, "slow") for each in queues]


def of_an_hour(metrics: int) -> Limits:
    """Limits that let so many metrics be asked for in the first hour of a day."""
    return Limits(sweep_metrics_per_day=24 * metrics, mass_symptom_share=1)


def test_measuring_keeps_to_the_hours_share_of_the_days_budget(swept: Sweeping) -> None:
    measured_queues(swept, 25)
    swept.account.settings = replace(swept.account.settings, limits=of_an_hour(100))
    done = swept.sweep([slow()])
    assert done is not None
    assert (done.suspects, done.measured, done.skipped, done.metrics) == (25, 10, 15, 80)
    assert swept.findings()["skipped_for_budget"] == 15
    an_hour_on(swept.account)
    done = swept.sweep([slow()])
    assert done is not None
    assert (done.suspects, done.measured, done.skipped, done.metrics) == (25, 0, 25, 0), (
        "heal measures again what is found, and that counts"
    )
    an_hour_on(swept.account)
    done = swept.sweep([slow()])
    assert done is not None
    assert done.measured == 10, "what an hour left is the next one's"


def test_a_budget_skips_not_always_the_same(swept: Sweeping) -> None:
    queues = measured_queues(swept, 25)
    swept.account.settings = replace(swept.account.settings, limits=of_an_hour(100))
    seen = set[str]()
    for _ in range(40):
        done = swept.sweep([slow()])
        assert done is not None
        assert len(done.findings) == 10
        seen |= {each.queue_arn for each in done.findings}
        if len(seen) == 25:
            break
        swept.account.later(days=1)
        for each in queues:
            swept.count(each, swept.account.now - timedelta(minutes=30), sent=1)
    assert seen == set(queues)


def test_what_merely_costs_money_is_measured_last(swept: Sweeping) -> None:
    queues = measured_queues(swept, 25)
    harmed, dear = slow(), slow()
    assert harmed.detection
    assert dear.detection
    few = replace(harmed.detection, suspects=lambda facts: facts.queue_arn in queues[-10:])
    last = replace(dear.detection, measured_last=True)
    symptoms = [
        replace(dear, name="dear", detection=last),
        replace(harmed, name="harmed", detection=few),
    ]
    swept.account.settings = replace(swept.account.settings, limits=of_an_hour(80))
    done = swept.sweep(symptoms)
    assert done is not None
    assert (done.suspects, done.measured, done.skipped) == (25, 10, 15)
    assert {each.queue_arn for each in done.findings} == set(queues[-10:])
    assert {each.symptom for each in done.findings} == {"harmed", "dear"}, "asked of once, for both"


def test_what_heal_will_measure_again_counts_too(swept: Sweeping) -> None:
    measured_queues(swept, 1)
    swept.sweep([slow()])
    items = swept.account.ledger_items()
    (spent,) = [each for (_, sort), each in items.items() if sort.startswith("metrics#")]
    assert spent["asked"] == {"N": "16"}


def test_without_a_budget_nothing_is_measured(swept: Sweeping) -> None:
    measured_queues(swept, 2)
    none = replace(swept.account.settings, limits=Limits(sweep_metrics_per_day=0))
    swept.account.settings = none
    done = swept.sweep([slow()])
    assert done is not None
    assert (done.suspects, done.measured, done.skipped) == (2, 0, 2)
    assert swept.told == []


def test_what_is_only_reported_is_not_told_to_heal(swept: Sweeping) -> None:
    swept.account.queue("plain")
    reported = replace(slow(of_configuration=True), plan=None)
    done = swept.sweep([reported])
    assert done is not None
    assert [each.symptom for each in done.findings] == ["slow"]
    assert swept.told == []


def test_one_queue_or_entry_that_fails_costs_itself(swept: Sweeping) -> None:
    good, bad = swept.account.queue("good"), swept.account.queue("bad")

    def detect(facts: Facts) -> Found:
        if facts.queue_arn == bad:
            raise ValueError("a person's text")
        return Found("found")

    failing = replace(
        slow(of_configuration=True),
        name="failing",
        detection=Detection(detect, frozenset({Need.QUEUE}), of_configuration=True),
    )
    done = swept.sweep([failing, slow(of_configuration=True)])
    assert done is not None
    assert done.failed.keys() == {bad}
    assert {(each.queue_arn, each.symptom) for each in done.findings} == {
        (good, "failing"),
        (good, "slow"),
        (bad, "slow"),
    }


def test_a_queue_that_was_deleted_since_it_was_listed_is_no_error(
    swept: Sweeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = ManagedQueue(swept.account.queue("here").replace("here", "gone"), {"mendq": "heal"})
    listed = Listing((gone,), {})
    monkeypatch.setattr("functions.aws.sweep_round.listed_queues", lambda *_: listed)
    done = swept.sweep()
    assert done is not None
    assert (done.queues, done.gone, done.failed) == (1, 1, {})


def test_a_name_in_settings_without_a_queue_is_not_looked_at(swept: Sweeping) -> None:
    swept.account.settings = replace(swept.account.settings, queues=("gone",))
    done = swept.sweep()
    assert done is not None
    assert (done.queues, done.gone, done.failed) == (0, 0, {})


def test_what_heal_asks_of_lambda_again_counts_too(swept: Sweeping) -> None:
    (queue,) = measured_queues(swept, 1)
    consumed(swept, queue)
    asked: list[int] = []
    count = cast(
        "Callable[..., None]",
        lambda params, **_: asked.append(len(params["MetricDataQueries"])),
    )
    events = swept.account.clients.cloudwatch.meta.events
    events.register("provide-client-params.cloudwatch.GetMetricData", count)
    needs = frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS})
    swept.sweep([replace(CONSUMER_FAILING, needs=needs, detection=slow().detection)])
    by_the_sweep = sum(asked)
    (healed,) = swept.heal()
    assert healed.errors == {}
    items = swept.account.ledger_items()
    (spent,) = [each for (_, sort), each in items.items() if sort.startswith("metrics#")]
    assert by_the_sweep == 12
    assert spent["asked"] == {"N": str(sum(asked))}


def test_of_what_nobody_has_measured_yet_heal_hears_while_it_fits(swept: Sweeping) -> None:
    """A fault in a configuration is found unmeasured, and heal measures it before it plans."""
    queues = measured_queues(swept, 5)
    swept.account.settings = replace(swept.account.settings, limits=of_an_hour(20))
    measures = replace(
        slow(of_configuration=True), needs=frozenset({Need.QUEUE, Need.MEASUREMENTS})
    )
    swept.sweep([measures])
    assert [arn for arn, _ in swept.named()] == queues[:2]
    assert len(swept.findings()["findings"]) == 5, "all of them are reported"
    swept.account.settings = replace(swept.account.settings, limits=Limits(sweep_metrics_per_day=0))
    swept.told.clear()
    an_hour_on(swept.account)
    swept.sweep([measures])
    assert swept.told == []
