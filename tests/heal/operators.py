"""Operators of an account in moto, and the heal Lambda that answers their requests."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from msgspec.structs import replace

from mendq.cases.context import FixContext, ManagingContext, WriteSteps
from mendq.cases.pins import Pins
from mendq.cases.receivers import Receivers
from mendq.cases.record import Notification, record_transition
from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.heal.apply import DlqWriter
from mendq.heal.approve import JsonDocument, act_on_decision, answer_request
from mendq.heal.restore_policy import PolicyWriter
from mendq.heal.resume import continue_case
from mendq.heal.rollback import rollback
from mendq.model.case import Case
from mendq.model.facts import Facts
from mendq.model.state import State
from mendq.model.steps import Owner
from mendq.redrive.reads import RedriveStart
from tests.account.account import Account
from tests.account.answers import make_response

OWNERS = {owner: str(owner) for owner in Owner}
# The arguments of a `fail` that only pages.
KMS_DENIED = {
    "eventName": "SendMessage",
    "errorCode": "KmsAccessDenied",
    "errorMessage": "The ciphertext refers to a customer master key that does not exist.",
}
ALICE = "arn:aws:sts::123456789012:assumed-role/Operators/alice"


class Heal:
    """The heal Lambda. It continues the requested case, or raises if `fails` is set."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self.asked: list[dict[str, str]] = []
        self.fails = False
        self.before: Callable[[], object] = lambda: None
        events: Any = account.clients.functions_with_long_timeout.meta.events
        events.register("before-send.lambda.Invoke", self._answer_invoke)

    def _answer_invoke(self, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        asked = json.loads(str(request.body, "utf-8") if isinstance(request.body, bytes) else "{}")
        self.asked.append(asked)
        self.before()
        try:
            document = self._document(asked)
        except Exception as error:  # noqa: BLE001 - Lambda answers whatever was raised
            failed = {"errorMessage": str(error)}
            return make_response(request, failed, X_Amz_Function_Error="Unhandled")
        return make_response(request, document)

    def _document(self, asked: dict[str, str]) -> dict[str, Any]:
        if self.fails:
            raise TimeoutError("it ran out of time")
        return continue_case(asked, make_owner_run(asked["symptom"], self.account)).document()


def make_context(account: Account) -> ManagingContext:
    """Return the context of a new invocation."""
    account.deliveries += 1
    owner = f"invocation-{account.deliveries}"
    return ManagingContext(
        clients=account.clients, settings=account.settings, owner=owner, now=account.now
    )


def make_owner_run(symptom: str, account: Account) -> FixContext:
    """Return a new invocation of the Lambda that owns the symptom's steps."""
    run = account.run()
    pins = Pins(account.clients.dynamodb, account.settings.case_table)
    receivers = Receivers(account.clients.dynamodb, account.settings.case_table)
    ways: dict[Owner, WriteSteps] = {
        Owner.ATTACH_DLQ: DlqWriter(receivers, run.now).write,
        Owner.RESTORE_POLICY: PolicyWriter(pins, run.now).write,
        Owner.REDRIVE: RedriveStart(run.settings.consent, receivers, run.now).write,
    }
    steps = SYMPTOM_BY_NAME[symptom].steps
    owner = steps[0].owner if steps else Owner.HEAL
    return replace(run, write_steps=ways.get(owner, run.write_steps), writer=owner)


def send_decision(account: Account, word: object, case_id: str, actor: str = ALICE) -> JsonDocument:
    """Approve, decline or close the case as an operator. Return the answer."""
    context = make_context(account)
    asked = {"case_id": case_id, "actor": actor}
    return answer_request(asked, lambda request: act_on_decision(request, word, context, OWNERS))


def roll_back(
    account: Account, case_id: str, *, dry_run: bool = False, **over: float
) -> JsonDocument:
    context = account.run(**over)
    return answer_request(
        {"case_id": case_id, "actor": ALICE},
        lambda request: rollback(request, context, dry_run=dry_run, function_name_by_owner=OWNERS),
    )


def outcomes_by_attribute(document: JsonDocument) -> dict[str, str]:
    """Return the outcome of each attribute."""
    return {attribute["attribute"]: attribute["outcome"] for attribute in document["attributes"]}


def fail_calls(account: Account, queue: str, word: str = "", **over: Any) -> None:
    """Let heal receive three failed calls, enough evidence for a case."""
    account.heal(account.late_deletes(queue, f"{word}1", f"{word}2", f"{word}3", **over))


def make_failing_queue(account: Account, tag: str = "heal") -> str:
    """Make a queue whose calls failed ten minutes ago. Heal raised its visibility timeout from 30
    to 45, or proposed it.
    """
    queue = account.queue(tag=tag, VisibilityTimeout="30")
    account.later(minutes=5)
    fail_calls(account, queue)
    account.later(minutes=5)
    return queue


def load_newest_case(account: Account) -> Case:
    """Return the case as its newest transition shows it."""
    return Case.from_document(account.transitions()[-1])


def list_states(account: Account) -> list[str]:
    return [transition["to"] for transition in account.transitions()]


def move_case(account: Account, case: Case, to: str) -> None:
    """Record a transition of the case to another state, as follow_up does."""
    context = make_context(account)
    view = context.case_store.look(case.queue_arn, case.symptom, ())
    symptom = SYMPTOM_BY_NAME[case.symptom]
    moved = case.move_to(State(to), "it came to that", account.now)
    record_transition(moved, view, Notification(symptom, Facts(case.queue_arn, {}, {})), context)


def call_without_effect(account: Account, queue: str, act: Callable[[], Any]) -> Any:
    """Return the answer of `act`, after checking that it changed neither queue nor case."""
    before = account.attributes(queue), account.case_store_items(), account.transitions()
    make_response = act()
    assert (account.attributes(queue), account.case_store_items(), account.transitions()) == before
    return make_response
