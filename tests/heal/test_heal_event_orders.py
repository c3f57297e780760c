"""Whatever happens in whatever order: bounds hold, retention stays, unmanaged queues are left."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack

from hypothesis import HealthCheck, settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from mendq.catalogue import CATALOGUE
from mendq.model.limits import Limits
from mendq.model.mode import Mode
from mendq.model.steps import STEP_CLASSES
from tests.account.account import make_settings, moto_account
from tests.catalogue.asking import call_examples_of

TAGS = {"healed.fifo": "heal", "healed": "heal", "watched.fifo": "observe", "strange": None}
ATTRIBUTES = {step.attribute: step for step in STEP_CLASSES}
FIX = tuple(entry for entry in CATALOGUE if entry.steps and call_examples_of(entry))
# What a person may set, legal for SQS and awkward for us.
PERSONS = {
    "VisibilityTimeout": ("0", "1", "599", "43200"),
    "MessageRetentionPeriod": ("60", "1209600"),
    "ReceiveMessageWaitTimeSeconds": ("0", "19", "20"),
    "MaximumMessageSize": ("1024", "1048576"),
    "KmsDataKeyReusePeriodSeconds": ("60", "86400"),
    "KmsMasterKeyId": ("alias/orders",),
}


class Account(RuleBasedStateMachine):
    """Every fixing symptom may heal; `chosen` is what people have set."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.account = self.stack.enter_context(moto_account())
        self.account.settings = make_settings(
            autonomy={entry.name: Mode.HEAL for entry in FIX},
            limits=Limits(writes_per_minute=1_000),
        )
        self.events = 0
        self.queues = {name: self.account.queue(name, tag) for name, tag in TAGS.items()}
        self.chosen = {name: self._now(name) for name in TAGS}

    def _now(self, name: str) -> Mapping[str, str]:
        attributes = self.account.attributes(self.queues[name])
        return {key: value for key, value in attributes.items() if "Timestamp" not in key}

    @rule(
        name=strategies.sampled_from(sorted(TAGS)),
        entry=strategies.sampled_from(FIX),
        example=strategies.integers(0, 5),
        calls=strategies.integers(1, 4),
    )
    def fail(self, name: str, entry: object, example: int, calls: int) -> None:
        symptom = next(each for each in FIX if each is entry)
        call = call_examples_of(symptom)[example % len(call_examples_of(symptom))].call
        self.events += calls
        bodies = self.account.late_deletes(
            self.queues[name],
            *(str(self.events - n) for n in range(calls)),
            eventName=call.event_name,
            errorCode=call.raw_error_code,
            errorMessage=call.error_message,
        )
        before = self._now(name)
        healed = self.account.heal(bodies)
        assert all(
            type(each).__name__ == "RetryLater" for each in healed.error_by_message_id.values()
        )
        after = self._now(name)
        written = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        assert not written or TAGS[name] == "heal"
        assert written <= ATTRIBUTES.keys()
        for each in written:
            step = ATTRIBUTES[each]
            stood = step.value_in(before)
            assert stood is not None
            kind = int if stood.isdecimal() else str
            assert step(kind(stood), kind(after[each])).find_bounds_fault() is None

    @rule(
        name=strategies.sampled_from(sorted(TAGS)),
        attribute=strategies.sampled_from(sorted(PERSONS)),
        which=strategies.integers(0, 3),
    )
    def a_person_sets(self, name: str, attribute: str, which: int) -> None:
        values = PERSONS[attribute]
        self.account.set(self.queues[name], **{attribute: values[which % len(values)]})
        self.chosen[name] = self._now(name)

    @rule(minutes=strategies.sampled_from((1, 7, 31, 25 * 60, 8 * 24 * 60)))
    def time_passes(self, minutes: int) -> None:
        self.account.later(minutes=minutes)

    def teardown(self) -> None:
        """Retention is what people chose; what may not be healed is as they left it."""
        with self.stack:
            for name, chosen in self.chosen.items():
                now = self._now(name)
                assert now["MessageRetentionPeriod"] == chosen["MessageRetentionPeriod"]
                if TAGS[name] != "heal":
                    assert now == chosen


def test_heal_writes_only_bounded_values_to_managed_queues_in_any_order_of_events() -> None:
    run_state_machine_as_test(
        Account,
        settings=settings(
            max_examples=12,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
