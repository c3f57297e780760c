"""Refusals that no example of the catalogue reaches: by facts, words and time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from mendq.cases.items import freeze_key
from mendq.catalogue import CATALOGUE, examples
from mendq.catalogue.symptom import Symptom
from mendq.model.facts import Facts, LambdaConsumer
from mendq.model.failed_call import RefusedBy, refused_by
from mendq.model.limits import Limits
from tests.before.answers import answer_of
from tests.heal.conftest import Account
from tests.heal.operators import Heal, case_of, say

_FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:bill"
_USER = "User: arn:aws:iam::123456789012:user/me is not authorized to perform: sqs:sendmessage"
_ON = f"{_USER} on resource: {examples.STANDARD_ARN}"
_POLICIES = (
    "resource-based policy",
    "identity-based policy",
    "service control policy",
    "resource control policy",
    "permissions boundary",
    "session policy",
    "VPC endpoint policy",
)
DENIALS = (
    *(f"{_ON} because no {each} allows the sqs:sendmessage action" for each in _POLICIES),
    *(f"{_ON} with an explicit deny in a {each}" for each in _POLICIES),
    f"{_ON} with an explicit deny in an identity-based policy transitively through a role",
    "Access to the resource is denied.",
    "",
)


def entry(name: str) -> Symptom:
    """The catalogue's entry of that name."""
    return next(each for each in CATALOGUE if each.name == name)


def by_facts() -> dict[str, Any]:
    """What is planned for a visibility timeout, and of a denial, by one fact at a time."""
    timeout = entry("visibility_timeout_too_short")
    denied = entry("access_denied")
    called = replace(
        examples.queue(queue_arn=examples.STANDARD_ARN),
        principals=("arn:aws:iam::123456789012:role/orders-worker",),
        event_names=("SendMessage",),
    )
    return {
        "visibility timeout": {name: _planned(timeout, facts) for name, facts in _timeouts()},
        "access denied": {
            each.value: _planned(denied, replace(called, refused_by=frozenset({each})))
            for each in RefusedBy
        },
        "words of IAM": {words: refused_by("AccessDenied", words) for words in DENIALS},
    }


def _planned(symptom: Symptom, facts: Facts) -> Any:
    assert symptom.plan is not None
    return answer_of(symptom.plan(facts, Limits()))


def _timeouts() -> Iterator[tuple[str, Facts]]:
    def facts(tags: Mapping[str, str] | None = None, **attributes: str) -> Facts:
        return examples.queue(tags, **{"VisibilityTimeout": "30", **attributes})

    def consumed(timeout_seconds: int, **attributes: str) -> Facts:
        consumer = LambdaConsumer(_FUNCTION, timeout_seconds, 0)
        return replace(facts(None, **attributes), lambda_consumers=(consumer,))

    needed = {"mendq:max-processing-seconds": "100"}
    yield "nothing names a need", facts()
    yield "a tag names it", facts(needed)
    yield "a tag that is no number", facts({"mendq:max-processing-seconds": "soon"})
    yield "a ceiling that is none", facts({**needed, "mendq:max-visibility-seconds": "-1"})
    yield "a tag over the ceiling", facts({"mendq:max-processing-seconds": "1000"})
    yield "a function", consumed(60)
    yield "a slow function", consumed(900)
    yield "readers set their own", replace(facts(), reader_visibility_seconds=10)
    yield (
        "a person chose less",
        replace(facts(VisibilityTimeout="400"), person_visibility_seconds=10),
    )
    yield "many in flight", facts(needed, ApproximateNumberOfMessagesNotVisible="40000")
    yield "short retention", facts(needed, MessageRetentionPeriod="120")


# What comes between a proposal and its approval.


def approved_after(between: Callable[[Account, str], object]) -> Callable[[Account], Any]:
    """An approval that heal takes up at once, after something has happened to the queue."""

    def way(account: Account) -> Any:
        heal = Heal(account)
        account.later(minutes=-15)
        arn = account.queue(tag="propose", VisibilityTimeout="30")
        account.later(minutes=10)
        account.heal(account.late_deletes(arn, "a", "b", "c"))
        case_id = case_of(account).case_id
        between(account, arn)
        said = say(account, "approve", case_id)
        return {**said, "asked of heal": len(heal.asked)}

    return way


def _made_anew(account: Account, arn: str) -> None:
    account.clients.sqs.delete_queue(QueueUrl=account.url(arn))
    account.later(minutes=2)
    account.queue(tag="propose", VisibilityTimeout="30")


def _frozen(account: Account, _arn: str) -> None:
    item = {**freeze_key(), "reason": {"S": "an incident"}, "by": {"S": "me"}, "at": {"N": "1"}}
    account.clients.dynamodb.put_item(TableName=account.settings.case_table, Item=item)


def _denied(account: Account, _arn: str) -> None:
    """SQS refuses every write."""
    error = {"Code": "AccessDenied", "Message": "not authorized"}
    refusal = {"Error": error, "ResponseMetadata": {"HTTPStatusCode": 403}}
    answer = cast("Callable[..., None]", lambda **_: (_Refused(), refusal))
    for client in (account.clients.sqs, account.clients.sqs_for_writing):
        events = client.meta.events
        events.register_first("before-call.sqs.SetQueueAttributes", answer)


class _Refused:
    status_code = 403


def _deleted(account: Account, arn: str) -> None:
    account.clients.sqs.delete_queue(QueueUrl=account.url(arn))


BETWEEN: Mapping[str, Callable[[Account, str], object]] = {
    "nothing": lambda *_: None,
    "another value": lambda account, arn: account.set_visibility(arn, 40),
    "a value that is enough": lambda account, arn: account.set_visibility(arn, 900),
    "it is switched off": lambda account, arn: account.tag(arn, mendq="off"),
    "it is only observed": lambda account, arn: account.tag(arn, mendq="observe"),
    "a tag names a need": lambda account, arn: account.tag(
        arn, **{"mendq:max-processing-seconds": "100"}
    ),
    "it is gone": _deleted,
    "it is made anew": _made_anew,
    "changes are frozen": _frozen,
    "SQS refuses writes": _denied,
    "a day passes": lambda account, _: account.later(hours=25),
}
