"""Whatever happens in whatever order: only a pinned policy is written, and nobody overruled."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from hypothesis import HealthCheck, given, settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from mendq.aws.errors import StepFailed
from mendq.catalogue import CATALOGUE
from mendq.follow_up.follow_up import follow_up
from mendq.heal.resume import take_up
from mendq.model.limits import Mode
from mendq.model.policy import Pin
from tests.heal import conftest
from tests.heal.answers import answered
from tests.heal.conftest import ACCOUNT, WORKER
from tests.heal.operators import OWNERS, context_of, say, undo
from tests.heal.policy_events import ALICE, DEPLOYS, by_cloudformation, identity_of
from tests.heal.restoring import (
    QUEUE,
    Analyzer,
    deny,
    pin,
    pins_of,
    policy_for,
    restoring_run,
    set_policy,
)

BILLING = f"arn:aws:iam::{ACCOUNT}:role/billing"
POLICIES = (
    policy_for(WORKER),
    policy_for(WORKER, BILLING),
    policy_for(BILLING),
    policy_for("*"),
    policy_for(WORKER, Effect="Deny"),
)
# Who changes a policy, as CloudTrail tells: a person in four disguises, and two that deploy.
PERSONS: tuple[dict[str, Any], ...] = (
    {},
    {"userAgent": "cloudformation.amazonaws.com"},
    {"userIdentity": identity_of(BILLING)},
    {"userIdentity": identity_of(ALICE, userName=DEPLOYS)},
)
MACHINES: tuple[dict[str, Any], ...] = (
    by_cloudformation(),
    {"userIdentity": identity_of(DEPLOYS)},
)
ENTRIES = tuple(each for each in CATALOGUE if each.caught)


@dataclass
class Known:
    """What people have said and done, by the test's own book."""

    pinned: Pin | None = None
    a_person_came_after: bool = False
    written: list[str] = field(default_factory=list)


class Account(RuleBasedStateMachine):
    """One queue; every symptom may heal, and CloudTrail tells everything at once."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.account = self.stack.enter_context(conftest.moto_account())
        self.account.settings = conftest.settings(
            autonomy={entry.name: Mode.HEAL for entry in ENTRIES if entry.steps}
        )
        self.analyzer = Analyzer(self.account)
        self.known, self.events, self.tells = Known(), 0, 0
        self.account.later(days=-20)
        self.queue = self.account.queue("orders", "heal", Policy=POLICIES[0])
        self.account.later(hours=1)
        clients = self.account.clients
        clients.sqs_for_writing.meta.events.register(
            "before-call.sqs.SetQueueAttributes", self._by_mendq
        )
        clients.functions.meta.events.register("before-send.lambda.Invoke", self._invoked)
        clients.functions_that_answer.meta.events.register(
            "before-send.lambda.Invoke", self._invoked
        )

    def _by_mendq(self, params: dict[str, Any], **_: Any) -> None:
        attributes = json.loads(params["body"])["Attributes"]
        if "Policy" not in attributes:
            return
        self.known.written.append(attributes["Policy"])
        pinned = self.known.pinned
        assert pinned is not None, "written, and nothing is pinned"
        assert list(attributes) == ["Policy"]
        assert attributes["Policy"].encode() == pinned.policy.encode()
        assert pins_of(self.account).of(QUEUE) == pinned, "another generation"
        assert self.account.now < pinned.expires_at
        assert not self.known.a_person_came_after, "a person was overruled"
        asked = [check for check, _ in self.analyzer.asked[-2:]]
        assert asked == ["CheckNoPublicAccess", "CheckNoNewAccess"]
        assert self.analyzer.results == {}, "written, and Access Analyzer said no"
        assert '"*"' not in attributes["Policy"]

    def _invoked(self, request: Any, **_: Any) -> Any:
        asked = json.loads(str(request.body, "utf-8"))
        run = restoring_run if "restore_policy" in request.url else lambda each: each.run()
        try:
            return answered(request, take_up(asked, run(self.account)).document())
        except (StepFailed, ReadTimeoutError) as error:
            failed = {"errorMessage": repr(error)}
            return answered(request, failed, X_Amz_Function_Error="Unhandled")

    @rule(automation=strategies.booleans())
    def somebody_pins(self, automation: bool) -> None:
        self.account.later(minutes=2)
        if self.account.attributes(self.queue).get("Policy"):
            assert pin(self.account, self.queue, [DEPLOYS] if automation else [])
            self.known = Known(pins_of(self.account).of(QUEUE), written=self.known.written)

    @rule()
    def somebody_takes_the_pin_away(self) -> None:
        if self.known.pinned is not None:
            assert pins_of(self.account).remove(self.known.pinned)
            self.known.pinned = None

    @rule(policy=strategies.sampled_from(POLICIES), record=strategies.sampled_from(PERSONS))
    def a_person_sets_the_policy(self, policy: str, record: dict[str, Any]) -> None:
        set_policy(self.account, self.queue, policy, **record)
        self.known.a_person_came_after = True
        self.account.later(minutes=25)

    @rule(policy=strategies.sampled_from(POLICIES), record=strategies.sampled_from(MACHINES))
    def a_deployment_sets_the_policy(self, policy: str, record: dict[str, Any]) -> None:
        set_policy(self.account, self.queue, policy, **record)
        by_role = "sourceIPAddress" not in record
        if by_role and self.known.pinned and DEPLOYS not in self.known.pinned.automation:
            self.known.a_person_came_after = True
        self.account.later(minutes=25)

    @rule(calls=strategies.integers(3, 5))
    def calls_are_refused(self, calls: int) -> None:
        self.events += 1
        deny(self.account, self.queue, f"refused-{self.events}", calls)

    @rule(entry=strategies.sampled_from(ENTRIES), example=strategies.integers(0, 5))
    def calls_fail(self, entry: Any, example: int) -> None:
        call = entry.caught[example % len(entry.caught)].call
        self.events += 1
        bodies = self.account.late_deletes(
            self.queue,
            *(f"failed-{self.events}-{n}" for n in range(3)),
            eventName=call.event_name,
            errorCode=call.raw_error_code,
            errorMessage=call.error_message,
        )
        self.account.heal(bodies)

    def _cases(self) -> list[str]:
        return sorted({each["case_id"] for each in self.account.transitions()})

    @rule(
        word=strategies.sampled_from(("approve", "approve", "approve", "decline", "close")),
        which=strategies.integers(0, 3),
    )
    def somebody_says(self, word: str, which: int) -> None:
        if cases := self._cases():
            say(self.account, word, cases[-1 - which % len(cases)])

    @rule(which=strategies.integers(0, 3))
    def somebody_rolls_back(self, which: int) -> None:
        if cases := self._cases():
            undo(self.account, cases[-1 - which % len(cases)])

    @rule()
    def a_minute_passes(self) -> None:
        self.account.later(minutes=1)
        follow_up(context_of(self.account), OWNERS, lambda: 60)

    @rule(
        check=strategies.sampled_from(("CheckNoPublicAccess", "CheckNoNewAccess")),
        passes=strategies.booleans(),
    )
    def access_analyzer_changes_its_mind(self, check: str, passes: bool) -> None:
        self.analyzer.results = {} if passes else {check: "FAIL"}

    @rule(minutes=strategies.sampled_from((7, 31, 25 * 60, 8 * 24 * 60)))
    def time_passes(self, minutes: int) -> None:
        self.account.later(minutes=minutes)

    def teardown(self) -> None:
        self.stack.close()


def test_no_path_writes_a_policy_that_is_not_pinned() -> None:
    run_state_machine_as_test(
        Account,
        settings=settings(
            max_examples=5,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


Stage = tuple[str, dict[str, Any]]
# What leads to a write where nothing comes between.
WAY: tuple[Stage, ...] = (
    ("somebody_pins", {"automation": False}),
    ("a_deployment_sets_the_policy", {"policy": POLICIES[2], "record": MACHINES[0]}),
    ("calls_are_refused", {"calls": 3}),
    ("a_minute_passes", {}),
    ("somebody_says", {"word": "approve", "which": 0}),
    ("a_minute_passes", {}),
)
POLICY, CHECKS = strategies.sampled_from(POLICIES), ("CheckNoPublicAccess", "CheckNoNewAccess")
A_PERSON = strategies.builds(
    lambda policy, record: ("a_person_sets_the_policy", {"policy": policy, "record": record}),
    POLICY,
    strategies.sampled_from(PERSONS),
)
DISTURBANCES = strategies.one_of(
    A_PERSON,
    strategies.sampled_from(WAY),
    strategies.just(("somebody_takes_the_pin_away", {})),
    strategies.just(("somebody_pins", {"automation": True})),
    strategies.builds(
        lambda policy, record: (
            "a_deployment_sets_the_policy",
            {"policy": policy, "record": record},
        ),
        POLICY,
        strategies.sampled_from(MACHINES),
    ),
    strategies.sampled_from(CHECKS).map(
        lambda check: ("access_analyzer_changes_its_mind", {"check": check, "passes": False})
    ),
    strategies.sampled_from((31, 25 * 60, 31 * 24 * 60)).map(
        lambda minutes: ("time_passes", {"minutes": minutes})
    ),
    strategies.just(("somebody_says", {"word": "decline", "which": 0})),
    strategies.just(("somebody_rolls_back", {"which": 0})),
)


def _written_along(stages: Iterable[Stage]) -> list[str]:
    made = Account()
    try:
        for name, arguments in stages:
            getattr(made, name)(**arguments)
        return made.known.written
    finally:
        made.teardown()


def test_the_way_leads_to_a_write() -> None:
    """A property that never comes to one would hold of anything."""
    assert _written_along(WAY) == [POLICIES[0]]


@pytest.mark.parametrize("place", [1, 2, 3])
def test_a_person_who_comes_between_is_never_overruled(place: int) -> None:
    for record in PERSONS:
        between = ("a_person_sets_the_policy", {"policy": POLICIES[2], "record": record})
        assert _written_along((*WAY[:place], between, *WAY[place:])) == []


@settings(max_examples=25, deadline=None)
@given(
    strategies.lists(strategies.tuples(strategies.integers(0, len(WAY)), DISTURBANCES), max_size=3)
)
def test_whatever_comes_between(disturbances: list[tuple[int, Stage]]) -> None:
    stages = list(WAY)
    for place, stage in sorted(disturbances, key=lambda each: each[0], reverse=True):
        stages.insert(place, stage)
    _written_along(stages)
