"""In any order of events, heal stays within its bounds and leaves retention and unmanaged queues
alone.
"""

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
FIXED_SYMPTOMS = tuple(entry for entry in CATALOGUE if entry.steps and call_examples_of(entry))
# Values that SQS accepts from a person and that are awkward for Mendq.
VALUES_BY_PEOPLE = {
    "VisibilityTimeout": ("0", "1", "599", "43200"),
    "MessageRetentionPeriod": ("60", "1209600"),
    "ReceiveMessageWaitTimeSeconds": ("0", "19", "20"),
    "MaximumMessageSize": ("1024", "1048576"),
    "KmsDataKeyReusePeriodSeconds": ("60", "86400"),
    "KmsMasterKeyId": ("alias/orders",),
}


class QueueStory(RuleBasedStateMachine):
    """Managed and unmanaged queues whose calls fail. Every symptom with a fix is in heal mode."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.account = self.stack.enter_context(moto_account())
        self.account.settings = make_settings(
            autonomy={entry.name: Mode.HEAL for entry in FIXED_SYMPTOMS},
            limits=Limits(writes_per_minute=1_000),
        )
        self.events = 0
        self.queues = {name: self.account.queue(name, tag) for name, tag in TAGS.items()}
        self.attributes_by_people = {name: self._read_attributes(name) for name in TAGS}

    def _read_attributes(self, name: str) -> Mapping[str, str]:
        attributes = self.account.attributes(self.queues[name])
        return {key: value for key, value in attributes.items() if "Timestamp" not in key}

    @rule(
        name=strategies.sampled_from(sorted(TAGS)),
        entry=strategies.sampled_from(FIXED_SYMPTOMS),
        example=strategies.integers(0, 5),
        calls=strategies.integers(1, 4),
    )
    def fail(self, name: str, entry: object, example: int, calls: int) -> None:
        symptom = next(symptom for symptom in FIXED_SYMPTOMS if symptom is entry)
        call = call_examples_of(symptom)[example % len(call_examples_of(symptom))].call
        self.events += calls
        bodies = self.account.late_deletes(
            self.queues[name],
            *(str(self.events - n) for n in range(calls)),
            eventName=call.event_name,
            errorCode=call.raw_error_code,
            errorMessage=call.error_message,
        )
        before = self._read_attributes(name)
        result = self.account.heal(bodies)
        assert all(
            type(error).__name__ == "RetryLater" for error in result.error_by_message_id.values()
        )
        after = self._read_attributes(name)
        written = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        assert not written or TAGS[name] == "heal"
        assert written <= ATTRIBUTES.keys()
        for attribute in written:
            step = ATTRIBUTES[attribute]
            stood = step.value_in(before)
            assert stood is not None
            kind = int if stood.isdecimal() else str
            assert step(kind(stood), kind(after[attribute])).find_bounds_fault() is None

    @rule(
        name=strategies.sampled_from(sorted(TAGS)),
        attribute=strategies.sampled_from(sorted(VALUES_BY_PEOPLE)),
        value_index=strategies.integers(0, 3),
    )
    def set_attribute_by_hand(self, name: str, attribute: str, value_index: int) -> None:
        values = VALUES_BY_PEOPLE[attribute]
        self.account.set(self.queues[name], **{attribute: values[value_index % len(values)]})
        self.attributes_by_people[name] = self._read_attributes(name)

    @rule(minutes=strategies.sampled_from((1, 7, 31, 25 * 60, 8 * 24 * 60)))
    def wait(self, minutes: int) -> None:
        self.account.later(minutes=minutes)

    def teardown(self) -> None:
        """Check that retention and the queues outside heal mode are as people left them."""
        with self.stack:
            for name, attributes_by_people in self.attributes_by_people.items():
                now = self._read_attributes(name)
                assert (
                    now["MessageRetentionPeriod"] == attributes_by_people["MessageRetentionPeriod"]
                )
                if TAGS[name] != "heal":
                    assert now == attributes_by_people


def test_heal_writes_bounded_values_only_in_heal_mode_and_no_retention_in_any_event_order() -> None:
    run_state_machine_as_test(
        QueueStory,
        settings=settings(
            max_examples=12,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
