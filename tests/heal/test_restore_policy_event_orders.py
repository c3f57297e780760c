"""In any order of events, Mendq writes only a pinned policy and never over a person's edit."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from botocore.exceptions import ReadTimeoutError
from hypothesis import given, settings, strategies

from mendq.aws.errors import StepFailed
from mendq.follow_up.follow_up import follow_up
from mendq.heal.resume import continue_case
from mendq.model.mode import Mode
from mendq.model.policy import Pin
from tests.account.account import ACCOUNT, WORKER, make_settings, moto_account
from tests.account.answers import make_response
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
# Records in CloudTrail of edits by a person in four disguises, and of two deployments.
EDITS_BY_PEOPLE: tuple[dict[str, Any], ...] = (
    {},
    {"userAgent": "cloudformation.amazonaws.com"},
    {"userIdentity": make_identity(BILLING)},
    {"userIdentity": make_identity(ALICE, userName=DEPLOYS)},
)
DEPLOYMENTS: tuple[dict[str, Any], ...] = (
    cloudformation_fields(),
    {"userIdentity": make_identity(DEPLOYS)},
)


@dataclass
class PolicyLedger:
    """The current pin, a person's edit since, and the policies that Mendq wrote."""

    pinned: Pin | None = None
    was_edited_after_pin: bool = False
    written_policies: list[str] = field(default_factory=list)


class PolicyStory:
    """One queue in heal mode whose policy Mendq may restore. CloudTrail reports every change at
    once.
    """

    def __init__(self) -> None:
        self.stack = ExitStack()
        self.account = self.stack.enter_context(moto_account())
        self.account.settings = make_settings(autonomy={"access_denied": Mode.HEAL})
        self.analyzer = Analyzer(self.account)
        self.ledger = PolicyLedger()
        self.events = 0
        self.account.later(days=-20)
        self.queue = self.account.queue("orders", "heal", Policy=POLICIES[0])
        self.account.later(hours=1)
        clients = self.account.clients
        writing = clients.sqs_for_writing.meta.events
        writing.register("before-call.sqs.SetQueueAttributes", self._check_write)
        for client in (clients.functions, clients.functions_with_long_timeout):
            client.meta.events.register("before-send.lambda.Invoke", self._answer_invoke)

    def _check_write(self, params: dict[str, Any], **_: Any) -> None:
        attributes = json.loads(params["body"])["Attributes"]
        if "Policy" not in attributes:
            return
        self.ledger.written_policies.append(attributes["Policy"])
        pinned = self.ledger.pinned
        assert pinned is not None, "written, and nothing is pinned"
        assert list(attributes) == ["Policy"]
        assert attributes["Policy"].encode() == pinned.policy.encode()
        assert pins_of(self.account).load(QUEUE) == pinned, "another generation"
        assert self.account.now < pinned.expires_at
        assert not self.ledger.was_edited_after_pin, "a person was overruled"
        assert self.analyzer.asked[-1][0] == "CheckNoPublicAccess"
        assert self.analyzer.results == {}, "written, and Access Analyzer said no"
        assert '"*"' not in attributes["Policy"]

    def _answer_invoke(self, request: Any, **_: Any) -> Any:
        asked = json.loads(str(request.body, "utf-8"))
        is_restore = "restore_policy" in request.url
        run = make_restore_run(self.account) if is_restore else self.account.run()
        try:
            return make_response(request, continue_case(asked, run).document())
        except (StepFailed, ReadTimeoutError) as error:
            failed = {"errorMessage": repr(error)}
            return make_response(request, failed, X_Amz_Function_Error="Unhandled")

    def pin_policy(self, automation: bool) -> None:
        self.account.later(minutes=2)
        if self.account.attributes(self.queue).get("Policy"):
            assert pin_current_policy(self.account, self.queue, [DEPLOYS] if automation else [])
            self.ledger = PolicyLedger(
                pins_of(self.account).load(QUEUE), written_policies=self.ledger.written_policies
            )

    def remove_pin(self) -> None:
        if self.ledger.pinned is not None:
            assert pins_of(self.account).remove(self.ledger.pinned)
            self.ledger.pinned = None

    def edit_policy_by_hand(self, policy: str, record: dict[str, Any]) -> None:
        set_policy(self.account, self.queue, policy, **record)
        self.ledger.was_edited_after_pin = True
        self.account.later(minutes=25)

    def deploy_new_policy(self, policy: str, record: dict[str, Any]) -> None:
        set_policy(self.account, self.queue, policy, **record)
        by_role = "sourceIPAddress" not in record
        if by_role and self.ledger.pinned and DEPLOYS not in self.ledger.pinned.automation:
            self.ledger.was_edited_after_pin = True
        self.account.later(minutes=25)

    def deny_more_calls(self) -> None:
        self.events += 1
        deny_calls(self.account, self.queue, f"refused-{self.events}")

    def decide_case(self, word: str) -> None:
        if self.account.transitions():
            send_decision(self.account, word, load_newest_case(self.account).case_id)

    def roll_back_case(self) -> None:
        if self.account.transitions():
            roll_back(self.account, load_newest_case(self.account).case_id)

    def follow_up_after_a_minute(self) -> None:
        self.account.later(minutes=1)
        follow_up(make_context(self.account), OWNERS, lambda: 60)

    def fail_public_access_check(self) -> None:
        self.analyzer.results = {"CheckNoPublicAccess": "FAIL"}

    def wait(self, minutes: int) -> None:
        self.account.later(minutes=minutes)


# A method of PolicyStory, and its arguments.
Stage = tuple[Any, ...]
# Stages that lead to a write if nothing disturbs them.
STAGES_TO_A_WRITE: tuple[Stage, ...] = (
    ("pin_policy", False),
    ("deploy_new_policy", POLICIES[2], DEPLOYMENTS[0]),
    ("deny_more_calls",),
    ("follow_up_after_a_minute",),
    ("decide_case", "approve"),
    ("follow_up_after_a_minute",),
)
_just = strategies.just
_sampled_from = strategies.sampled_from
DISTURBANCES = strategies.one_of(
    strategies.tuples(
        _just("edit_policy_by_hand"), _sampled_from(POLICIES), _sampled_from(EDITS_BY_PEOPLE)
    ),
    strategies.tuples(
        _just("deploy_new_policy"), _sampled_from(POLICIES), _sampled_from(DEPLOYMENTS)
    ),
    strategies.tuples(_just("fail_public_access_check")),
    strategies.tuples(_just("wait"), _sampled_from((31, 25 * 60, 31 * 24 * 60))),
    _sampled_from(STAGES_TO_A_WRITE),
    _sampled_from((("pin_policy", True), ("decide_case", "decline"))),
    _sampled_from((("remove_pin",), ("roll_back_case",))),
)


def _play_stages(stages: Iterable[Stage]) -> list[str]:
    made = PolicyStory()
    with made.stack:
        for name, *arguments in stages:
            getattr(made, name)(*arguments)
        return made.ledger.written_policies


def test_undisturbed_approval_restores_the_pinned_policy() -> None:
    """Without a write, the properties below would hold of any code."""
    assert _play_stages(STAGES_TO_A_WRITE) == [POLICIES[0]]


def test_restore_policy_never_overwrites_a_persons_edit_at_any_stage() -> None:
    for place, record in enumerate((*EDITS_BY_PEOPLE[1:], EDITS_BY_PEOPLE[0]), 1):
        between = ("edit_policy_by_hand", POLICIES[2], record)
        assert (
            _play_stages(
                (*STAGES_TO_A_WRITE[: min(place, 3)], between, *STAGES_TO_A_WRITE[min(place, 3) :])
            )
            == []
        )


@settings(max_examples=8, deadline=None)
@given(
    strategies.lists(
        strategies.tuples(strategies.integers(0, len(STAGES_TO_A_WRITE)), DISTURBANCES), max_size=3
    )
)
def test_restore_policy_writes_only_the_pinned_policy_in_any_order_of_events(
    disturbances: list[tuple[int, Stage]],
) -> None:
    stages = list(STAGES_TO_A_WRITE)
    for place, stage in sorted(disturbances, key=itemgetter(0), reverse=True):
        stages.insert(place, stage)
    _play_stages(stages)
