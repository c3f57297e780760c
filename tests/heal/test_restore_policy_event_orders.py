"""Whatever happens in whatever order: only a pinned policy is written, and nobody overruled."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ReadTimeoutError
from hypothesis import given, settings, strategies

from mendq.aws.errors import StepFailed
from mendq.follow_up.follow_up import follow_up
from mendq.heal.resume import continue_case
from mendq.model.mode import Mode
from mendq.model.policy import Pin
from tests.account.account import ACCOUNT, WORKER, make_settings, moto_account
from tests.account.answers import answered
from tests.heal.operators import OWNERS, load_newest_case, make_context, roll_back, send_decision
from tests.heal.policy_events import ALICE, DEPLOYS, cloudformation_fields, make_identity
from tests.heal.restoring import (
    QUEUE,
    Analyzer,
    deny_calls,
    make_policy,
    make_restore_run,
    pin_current_policy,
    pins_of,
    set_policy,
)

BILLING = f"arn:aws:iam::{ACCOUNT}:role/billing"
POLICIES = (
    make_policy(WORKER),
    make_policy(WORKER, BILLING),
    make_policy(BILLING),
    make_policy("*"),
    make_policy(WORKER, Effect="Deny"),
)
# Who changes a policy, as CloudTrail tells: a person in four disguises, and two that deploy.
PERSONS: tuple[dict[str, Any], ...] = (
    {},
    {"userAgent": "cloudformation.amazonaws.com"},
    {"userIdentity": make_identity(BILLING)},
    {"userIdentity": make_identity(ALICE, userName=DEPLOYS)},
)
MACHINES: tuple[dict[str, Any], ...] = (
    cloudformation_fields(),
    {"userIdentity": make_identity(DEPLOYS)},
)


@dataclass
class Known:
    """What people have said and done, by the test's own book."""

    pinned: Pin | None = None
    a_person_came_after: bool = False
    written: list[str] = field(default_factory=list)


class Account:
    """One queue whose policy Mendq may put back by itself; CloudTrail tells everything at once."""

    def __init__(self) -> None:
        self.stack = ExitStack()
        self.account = self.stack.enter_context(moto_account())
        self.account.settings = make_settings(autonomy={"access_denied": Mode.HEAL})
        self.analyzer = Analyzer(self.account)
        self.known = Known()
        self.events = 0
        self.account.later(days=-20)
        self.queue = self.account.queue("orders", "heal", Policy=POLICIES[0])
        self.account.later(hours=1)
        clients = self.account.clients
        writing = clients.sqs_for_writing.meta.events
        writing.register("before-call.sqs.SetQueueAttributes", self._by_mendq)
        for client in (clients.functions, clients.functions_with_long_timeout):
            client.meta.events.register("before-send.lambda.Invoke", self._invoked)

    def _by_mendq(self, params: dict[str, Any], **_: Any) -> None:
        attributes = json.loads(params["body"])["Attributes"]
        if "Policy" not in attributes:
            return
        self.known.written.append(attributes["Policy"])
        pinned = self.known.pinned
        assert pinned is not None, "written, and nothing is pinned"
        assert list(attributes) == ["Policy"]
        assert attributes["Policy"].encode() == pinned.policy.encode()
        assert pins_of(self.account).load(QUEUE) == pinned, "another generation"
        assert self.account.now < pinned.expires_at
        assert not self.known.a_person_came_after, "a person was overruled"
        assert self.analyzer.asked[-1][0] == "CheckNoPublicAccess"
        assert self.analyzer.results == {}, "written, and Access Analyzer said no"
        assert '"*"' not in attributes["Policy"]

    def _invoked(self, request: Any, **_: Any) -> Any:
        asked = json.loads(str(request.body, "utf-8"))
        run = make_restore_run if "restore_policy" in request.url else lambda each: each.run()
        try:
            return answered(request, continue_case(asked, run(self.account)).document())
        except (StepFailed, ReadTimeoutError) as error:
            failed = {"errorMessage": repr(error)}
            return answered(request, failed, X_Amz_Function_Error="Unhandled")

    def somebody_pins(self, automation: bool) -> None:
        self.account.later(minutes=2)
        if self.account.attributes(self.queue).get("Policy"):
            assert pin_current_policy(self.account, self.queue, [DEPLOYS] if automation else [])
            self.known = Known(pins_of(self.account).load(QUEUE), written=self.known.written)

    def somebody_takes_the_pin_away(self) -> None:
        if self.known.pinned is not None:
            assert pins_of(self.account).remove(self.known.pinned)
            self.known.pinned = None

    def a_person_sets_the_policy(self, policy: str, record: dict[str, Any]) -> None:
        set_policy(self.account, self.queue, policy, **record)
        self.known.a_person_came_after = True
        self.account.later(minutes=25)

    def a_deployment_sets_the_policy(self, policy: str, record: dict[str, Any]) -> None:
        set_policy(self.account, self.queue, policy, **record)
        by_role = "sourceIPAddress" not in record
        if by_role and self.known.pinned and DEPLOYS not in self.known.pinned.automation:
            self.known.a_person_came_after = True
        self.account.later(minutes=25)

    def calls_are_refused(self) -> None:
        self.events += 1
        deny_calls(self.account, self.queue, f"refused-{self.events}")

    def somebody_says(self, word: str) -> None:
        if self.account.transitions():
            send_decision(self.account, word, load_newest_case(self.account).case_id)

    def somebody_rolls_back(self) -> None:
        if self.account.transitions():
            roll_back(self.account, load_newest_case(self.account).case_id)

    def a_minute_passes(self) -> None:
        self.account.later(minutes=1)
        follow_up(make_context(self.account), OWNERS, lambda: 60)

    def access_analyzer_says_no(self) -> None:
        self.analyzer.results = {"CheckNoPublicAccess": "FAIL"}

    def time_passes(self, minutes: int) -> None:
        self.account.later(minutes=minutes)


# A method of an account, and its arguments.
Stage = tuple[Any, ...]
# What leads to a write where nothing comes between.
WAY: tuple[Stage, ...] = (
    ("somebody_pins", False),
    ("a_deployment_sets_the_policy", POLICIES[2], MACHINES[0]),
    ("calls_are_refused",),
    ("a_minute_passes",),
    ("somebody_says", "approve"),
    ("a_minute_passes",),
)
_just = strategies.just
_one_of = strategies.sampled_from
DISTURBANCES = strategies.one_of(
    strategies.tuples(_just("a_person_sets_the_policy"), _one_of(POLICIES), _one_of(PERSONS)),
    strategies.tuples(_just("a_deployment_sets_the_policy"), _one_of(POLICIES), _one_of(MACHINES)),
    strategies.tuples(_just("access_analyzer_says_no")),
    strategies.tuples(_just("time_passes"), _one_of((31, 25 * 60, 31 * 24 * 60))),
    _one_of(WAY),
    _one_of((("somebody_pins", True), ("somebody_says", "decline"))),
    _one_of((("somebody_takes_the_pin_away",), ("somebody_rolls_back",))),
)


def _written_along(stages: Iterable[Stage]) -> list[str]:
    made = Account()
    with made.stack:
        for name, *arguments in stages:
            getattr(made, name)(*arguments)
        return made.known.written


def test_undisturbed_approval_restores_the_pinned_policy() -> None:
    """A property that never comes to one would hold of anything."""
    assert _written_along(WAY) == [POLICIES[0]]


def test_restore_policy_never_overwrites_a_persons_edit_at_any_stage() -> None:
    for place, record in enumerate((*PERSONS[1:], PERSONS[0]), 1):
        between = ("a_person_sets_the_policy", POLICIES[2], record)
        assert _written_along((*WAY[: min(place, 3)], between, *WAY[min(place, 3) :])) == []


@settings(max_examples=8, deadline=None)
@given(
    strategies.lists(strategies.tuples(strategies.integers(0, len(WAY)), DISTURBANCES), max_size=3)
)
def test_restore_policy_writes_only_the_pinned_policy_in_any_order_of_events(
    disturbances: list[tuple[int, Stage]],
) -> None:
    stages = list(WAY)
    for place, stage in sorted(disturbances, key=lambda each: each[0], reverse=True):
        stages.insert(place, stage)
    _written_along(stages)
