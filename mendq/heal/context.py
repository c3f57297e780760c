"""The context of an invocation that owns a write, and calls to the Lambda that owns another."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mendq.aws.clients import Clients, closed_calendars
from mendq.aws.errors import OwnerUnavailable
from mendq.aws.queue import managed_queues
from mendq.cases.context import WritingContext
from mendq.cases.finding import Shared
from mendq.catalogue.symptom import Symptom
from mendq.model.case import Case, State
from mendq.model.failed_call import FailedCall
from mendq.model.limits import Mode
from mendq.model.plan import Ignore, Refusal, owner_of_case
from mendq.model.settings import OwnerSettings
from mendq.model.steps import Owner

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient


class Group(Struct, frozen=True, eq=False):
    """The failed calls of one batch that point to one symptom of one queue.

    Without any where it is a scan that points there: `is_found`, for those it is `shared` with. So
    it is too where the calls say nothing by themselves: what is measured decides.
    """

    queue_arn: str
    symptom: Symptom
    calls: tuple[FailedCall, ...] = ()
    is_found: bool = False
    shared: Shared = msgspec.field(default_factory=Shared)

    @property
    def callers(self) -> frozenset[str]:
        return frozenset(each.principal_arn for each in self.calls)


class FixContext(WritingContext, frozen=True, kw_only=True, dict=True):
    """One invocation of a Lambda that owns a write: whose steps it takes, and how."""

    settings: OwnerSettings
    whose: Owner

    @cached_property
    def closed_calendars(self) -> str | None:
        """Why a change calendar freezes changes, or None; asked once an invocation."""
        return closed_calendars(self.clients, self.settings.freeze_calendars)

    @cached_property
    def managed_modes(self) -> Mapping[str, Mode]:
        """Asked once an invocation, and only when many show a symptom."""
        found = managed_queues(self.clients, self.settings.account, self.settings.consent)
        return {each.queue_arn: each.mode for each in found}


class Outcome(Struct, frozen=True):
    """What became of a group: a case's new transition, or why there is none."""

    case: Case | None = None
    refusal: Refusal | None = None

    @property
    def escalated(self) -> bool:
        return self.case is not None and self.case.state is State.ESCALATED

    def document(self) -> dict[str, Any]:
        """What whoever called with a case is answered."""
        case, refusal = self.case, self.refusal
        return {
            "case_id": case.case_id if case else None,
            "state": str(case.state) if case else None,
            "reason": case.reason if case else refusal.reason if refusal else "",
            "code": refusal.code if refusal else "",
            "steps": list(case.steps) if case else [],
        }


def declined(code: str, reason: str) -> Outcome:
    """An outcome that nothing is written down for."""
    return Outcome(refusal=Ignore(code, reason))


Functions = Mapping[Owner, str]


def request_about(case: Case) -> dict[str, str]:
    """What an owner takes a case up by."""
    return {"case_id": case.case_id, "queue_arn": case.queue_arn, "symptom": case.symptom}


def call_owner(clients: Clients, functions: Functions, case: Case) -> None:
    """Asynchronous: what becomes of it stands in the case. Raises OwnerUnavailable."""
    _invoke(clients.functions, "Event", functions, case)


def ask_owner(
    clients: Clients, functions: Functions, case: Case, **more: bool
) -> Mapping[str, Any]:
    """Synchronous: what became of the case, as its owner answers it. Raises OwnerUnavailable.

    `more` is what is asked beside taking it up.
    """
    client = clients.functions_that_answer
    answer = _invoke(client, "RequestResponse", functions, case, **more)
    if not isinstance(answer, dict):
        raise OwnerUnavailable(f"{owner_of_case(case.steps)} gave no answer")
    return answer


def _invoke(
    client: LambdaClient,
    kind: Literal["Event", "RequestResponse"],
    functions: Functions,
    case: Case,
    **more: bool,
) -> object:
    owner, payload = owner_of_case(case.steps), json.dumps({**request_about(case), **more})
    if owner not in functions:
        raise OwnerUnavailable(f"this deployment has no {owner}: deploy the stack again")
    name = functions[owner]
    try:
        response = client.invoke(FunctionName=name, InvocationType=kind, Payload=payload.encode())
        answer = json.loads(response["Payload"].read()) if kind == "RequestResponse" else None
    except (ClientError, BotoCoreError, ValueError) as error:
        raise OwnerUnavailable(f"{owner} could not be called: {error}") from error
    if "FunctionError" in response:
        why = answer.get("errorMessage") if isinstance(answer, dict) else None
        raise OwnerUnavailable(f"{owner} could not do it now: {why or 'it gave no reason'}")
    return answer
