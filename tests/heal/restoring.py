"""A queue whose pinned policy is overwritten, and the Lambda that restores the policy."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from botocore.awsrequest import AWSPreparedRequest, AWSResponse

from mendq.cases.context import FixContext
from mendq.cases.pins import Pins
from mendq.heal.outcome import Outcome
from mendq.heal.owners import make_owner_request
from mendq.heal.restore_policy import check_restored_policy
from mendq.heal.resume import continue_case
from mendq.model.case import Case
from mendq.model.facts import Facts
from mendq.model.policy import Pin, digest_of_policy
from tests.account.account import ACCOUNT, REGION, WORKER, Account
from tests.account.answers import make_response
from tests.heal.operators import load_newest_case, make_owner_run
from tests.heal.policy_events import cloudformation_fields, make_policy_event

QUEUE = f"arn:aws:sqs:{REGION}:{ACCOUNT}:orders"
REFUSED = (
    f"User: arn:aws:sts::{ACCOUNT}:assumed-role/orders-worker/i-1 is not authorized to perform: "
    f"sqs:sendmessage on resource: {QUEUE} "
    "because no resource-based policy allows the sqs:sendmessage action"
)


def make_policy(*principals: str, **over: Any) -> str:
    """Return a policy that lets the principals send, in the spelling that moto returns."""
    statement = {
        "Sid": "Senders",
        "Effect": "Allow",
        "Principal": {"AWS": list(principals)},
        "Action": "sqs:SendMessage",
        "Resource": QUEUE,
        **over,
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


GRANTS = make_policy(WORKER)
EMPTIED = make_policy(f"arn:aws:iam::{ACCOUNT}:role/billing")


@dataclass
class Analyzer:
    """IAM Access Analyzer. It returns `results` and stores each request in `asked`."""

    account: Account
    results: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    fails_with: int | None = None
    fails_as: str = "Some"
    # Fields from the second check on, after the policy was restored.
    then: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        events = self.account.clients.access_analyzer.meta.events
        events.register("before-send.accessanalyzer", self._answer)

    def leave(self) -> None:
        events = self.account.clients.access_analyzer.meta.events
        events.unregister("before-send.accessanalyzer", self._answer)

    def _answer(self, event_name: str, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        check = event_name.rpartition(".")[2]
        self.asked.append((check, json.loads(str(request.body, "utf-8"))))  # type: ignore[arg-type]
        if self.fails_with is not None:
            failed = {"message": "it did not"}
            return make_response(request, failed, self.fails_with, X_Amzn_ErrorType=self.fails_as)
        result = self.results.get(check, "PASS")
        vars(self).update(self.then)
        return make_response(
            request,
            {"result": result, "message": "as it is", "reasons": [{"description": "so it is"}]},
        )


def make_pinned_queue(account: Account, tag: str = "propose") -> str:
    """Make a queue some hours old whose policy a person pinned."""
    account.later(hours=-5)
    queue = account.queue("orders", tag, Policy=GRANTS)
    account.later(hours=1)
    assert pin_current_policy(account, queue)
    account.later(hours=1)
    return queue


def pins_of(account: Account) -> Pins:
    return Pins(account.clients.dynamodb, account.settings.case_table)


def pin_current_policy(account: Account, queue: str, automation: Sequence[str] = ()) -> bool:
    """Pin the queue's current policy, as `mendq policy pin` does. Return False if the pin was
    refused.
    """
    attributes = account.attributes(queue)
    facts = Facts(queue, attributes, {})
    policy = attributes.get("Policy", "")
    assert facts.created_at is not None
    assert facts.modified_at is not None
    pins = pins_of(account)
    made = facts.created_at
    modified = facts.modified_at
    of = (
        digest_of_policy(policy),
        pins.load_last_generation(queue) + 1,
        account.now,
        "ada",
        made,
        modified,
    )
    return pins.put(Pin(queue, policy, *of, tuple(automation)))


def set_policy(account: Account, queue: str, policy: str, **record: Any) -> None:
    """Set the policy as Alice, unless `record` names another principal."""
    account.set(queue, Policy=policy)
    account.history.insert(0, make_policy_event(account, queue, **record))


def deploy_policy(account: Account, queue: str, policy: str = EMPTIED) -> None:
    """Set the policy as CloudFormation."""
    set_policy(account, queue, policy, **cloudformation_fields())


def deny_calls(account: Account, queue: str, word: str = "denied", calls: int = 3) -> None:
    """Let heal receive refused calls: three by default, enough evidence for a case."""
    bodies = account.late_deletes(
        queue,
        *(f"{word}-{n}" for n in range(calls)),
        eventName="SendMessage",
        errorCode="AccessDenied",
        errorMessage=REFUSED,
    )
    account.later(seconds=1)
    account.heal(bodies)


def make_queue_with_emptied_policy(account: Account) -> str:
    """Make a queue whose pinned policy a deployment overwrote, so that SQS refuses its calls."""
    queue = make_pinned_queue(account)
    deploy_policy(account, queue)
    account.later(minutes=25)
    deny_calls(account, queue)
    return queue


def make_restore_run(account: Account) -> FixContext:
    """Return a new invocation of restore_policy."""
    return make_owner_run("access_denied", account)


def restore_policy(account: Account, case: Case | None = None) -> Outcome:
    """Let restore_policy continue the case, or the newest one."""
    run = make_restore_run(account)
    return check_restored_policy(
        continue_case(make_owner_request(case or load_newest_case(account)), run), run
    )


def policy_of(account: Account, queue: str) -> str:
    return account.attributes(queue).get("Policy", "")
