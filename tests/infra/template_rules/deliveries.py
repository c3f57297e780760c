"""What is on its way: nothing is lost, nobody works at a message that is another's by then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mendq.cases import transactions as case_store_claims
from mendq.redrive import store
from tests.infra.synthesized import QUEUE_ARNS, Template, as_list
from tests.infra.template_rules.limits import EVENT_RULE

MAPPING, QUEUE = "AWS::Lambda::EventSourceMapping", "AWS::SQS::Queue"
SCHEDULE, FUNCTION = "AWS::Scheduler::Schedule", "AWS::Lambda::Function"
INVOKED = "AWS::Lambda::EventInvokeConfig"


def nothing_is_lost(template: Template) -> Iterator[str]:
    """What cannot be delivered is tried again within bounds, and then kept for a person.

    A mapping of SQS has no on-failure destination: its queue's own DLQ takes what it gives up.
    https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
    """
    parked = {
        each["Properties"]["FunctionName"].removeprefix("arn:"): each["Properties"]
        for each in template.all(INVOKED).values()
    }
    for name, target in _targets(template):
        retry = target.get("RetryPolicy", {})
        if not 1 <= retry.get("MaximumRetryAttempts", 0) <= 185:
            yield f"{name} does not say how often it tries again"
        if not 60 <= retry.get("MaximumEventAgeInSeconds", 0) <= 86_400:
            yield f"{name} does not say how long it tries"
        if not _is_ours(template, target.get("DeadLetterConfig", {}).get("Arn")):
            yield f"{name} drops what it cannot deliver"
        function = target.get("Arn", "").removeprefix("arn:")
        if function in template.all(FUNCTION):
            yield from _lost_by(template, function, parked.get(function, {}))
    for name, mapping in template.all(MAPPING).items():
        given = mapping["Properties"]
        if given.get("DestinationConfig"):
            yield f"{name} has a destination, which SQS mappings do not"
        policy = read_queue(template, given).get("RedrivePolicy", {})
        if not _is_ours(template, policy.get("deadLetterTargetArn")):
            yield f"{name} never gives up what cannot be read"


def _lost_by(template: Template, function: str, invoked: dict[str, Any]) -> Iterator[str]:
    """Whoever invokes it waits for no answer, so that Lambda alone can keep what fails."""
    retained = invoked.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination")
    if not _is_ours(template, retained):
        yield f"{function} drops what fails"
    if "MaximumEventAgeInSeconds" not in invoked or "MaximumRetryAttempts" not in invoked:
        yield f"{function} tries as long as Lambda likes"


def _targets(template: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, rule in template.all(EVENT_RULE).items():
        yield from ((name, target) for target in rule["Properties"]["Targets"])
    for name, schedule in template.all(SCHEDULE).items():
        yield name, schedule["Properties"]["Target"]


def read_queue(template: Template, mapping: dict[str, Any]) -> dict[str, Any]:
    """The properties of the queue that a mapping reads."""
    queue = template.all(QUEUE)[mapping["EventSourceArn"].split(":")[-1]]
    given: dict[str, Any] = queue["Properties"]
    return given


def _is_ours(template: Template, arn: str | None) -> bool:
    return (arn or "").split(":")[-1] in template.all(QUEUE)


def visibilities_cover_their_readers(template: Template) -> Iterator[str]:
    """Messages that a Lambda is at work on stay its own, and tries end before messages do.

    Six times the timeout beside the window is AWS's advice. More than 10 messages in a batch take
    a window, and a FIFO queue takes neither.
    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
    """
    for name, mapping in template.all(MAPPING).items():
        given, queue = mapping["Properties"], read_queue(template, mapping["Properties"])
        function = template.all(FUNCTION)[given["FunctionName"].removeprefix("arn:")]
        timeout = function["Properties"]["Timeout"]
        window, size = given.get("MaximumBatchingWindowInSeconds", 0), given["BatchSize"]
        visibility = queue["VisibilityTimeout"]
        if size > (10 if queue.get("FifoQueue") or window < 1 else 10_000):
            yield f"{name} has batches of {size} and a window of {window} s"
        if given.get("FunctionResponseTypes") != ["ReportBatchItemFailures"]:
            yield f"{name} gives a whole batch back for one message"
        if visibility < 6 * timeout + window:
            yield f"{name}: {visibility} s of visibility timeout for a Lambda of {timeout} s"
        tries = queue.get("RedrivePolicy", {}).get("maxReceiveCount")
        if tries is None or tries * visibility >= queue["MessageRetentionPeriod"]:
            yield f"{name}: messages end before their {tries} tries do"


# A call of the holder may still be on its way when Lambda ends it.
ON_THE_WAY_SECONDS = 15
CLAIMS = {
    "sqs:SetQueueAttributes": case_store_claims.CLAIM_SECONDS,
    "sqs:CreateQueue": case_store_claims.CLAIM_SECONDS,
    "sqs:SendMessage": store.CLAIM_SECONDS,
}
LONGEST = max(CLAIMS.values())


def claims_end_in_time(template: Template) -> Iterator[str]:
    """A claim outlives the Lambda that holds it, and ends before the intake gives a message up.

    So no two ever write one attribute, and a claim that a dying Lambda left costs no message.
    """
    for name, function in template.all(FUNCTION).items():
        role, seconds = function["Properties"]["Role"], function["Properties"]["Timeout"]
        claims = [CLAIMS[each] for each in _written_by(template, role) if each in CLAIMS]
        if claims and seconds + ON_THE_WAY_SECONDS >= min(claims):
            yield f"{name} may write for {seconds} s under a claim of {min(claims)} s"
    for name, mapping in template.all(MAPPING).items():
        queue = read_queue(template, mapping["Properties"])
        patience = queue["VisibilityTimeout"] * queue["RedrivePolicy"]["maxReceiveCount"]
        if patience <= LONGEST:
            yield f"{name} gives up after {patience} s, and a claim may last {LONGEST} s"


def _written_by(template: Template, role: str) -> Iterator[str]:
    """The actions that a role is allowed on more than our own queues, which nobody claims."""
    own = {f"{QUEUE_ARNS}{name}" for name in template.all(QUEUE)}
    for policy in template.all("AWS::IAM::Policy").values():
        if role.removeprefix("arn:") in policy["Properties"]["Roles"]:
            for each in policy["Properties"]["PolicyDocument"]["Statement"]:
                if each["Effect"] == "Allow" and not own.issuperset(as_list(each["Resource"])):
                    yield from as_list(each["Action"])
