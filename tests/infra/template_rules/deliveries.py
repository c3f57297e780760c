"""No event is lost, and no Lambda works on a message that another one has received again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mendq.cases import transactions as case_store_claims
from mendq.redrive import store
from tests.infra.synthesized import QUEUE_ARNS, Template, as_list
from tests.infra.template_rules.limits import EVENT_RULE

MAPPING = "AWS::Lambda::EventSourceMapping"
QUEUE = "AWS::SQS::Queue"
SCHEDULE = "AWS::Scheduler::Schedule"
FUNCTION = "AWS::Lambda::Function"
INVOKED = "AWS::Lambda::EventInvokeConfig"


def check_failed_events_are_kept(template: Template) -> Iterator[str]:
    """An undeliverable event is retried within limits and then kept in a DLQ.

    An event source mapping of SQS has no on-failure destination. Its queue's DLQ keeps the message.
    https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
    """
    parked = {
        invocation["Properties"]["FunctionName"].removeprefix("arn:"): invocation["Properties"]
        for invocation in template.all(INVOKED).values()
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
            yield from _check_failed_events(template, function, parked.get(function, {}))
    for name, mapping in template.all(MAPPING).items():
        given = mapping["Properties"]
        if given.get("DestinationConfig"):
            yield f"{name} has a destination, which SQS mappings do not"
        policy = read_queue(template, given).get("RedrivePolicy", {})
        if not _is_ours(template, policy.get("deadLetterTargetArn")):
            yield f"{name} never gives up what cannot be read"


def _check_failed_events(
    template: Template, function: str, invoked: dict[str, Any]
) -> Iterator[str]:
    """The invocation is asynchronous, so only Lambda can keep a failed event."""
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
    """Return the properties of the queue that a mapping reads."""
    queue = template.all(QUEUE)[mapping["EventSourceArn"].split(":")[-1]]
    given: dict[str, Any] = queue["Properties"]
    return given


def _is_ours(template: Template, arn: str | None) -> bool:
    return (arn or "").split(":")[-1] in template.all(QUEUE)


def check_visibility_timeouts(template: Template) -> Iterator[str]:
    """A message stays invisible while a Lambda works on it, and retries end before retention.

    AWS recommends six times the function timeout plus the batching window. A batch of more than 10
    messages needs a batching window, and a FIFO queue allows neither.
    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
    """
    for name, mapping in template.all(MAPPING).items():
        given = mapping["Properties"]
        queue = read_queue(template, given)
        function = template.all(FUNCTION)[given["FunctionName"].removeprefix("arn:")]
        timeout = function["Properties"]["Timeout"]
        window = given.get("MaximumBatchingWindowInSeconds", 0)
        size = given["BatchSize"]
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


# A call of the claim's holder may still be in flight when Lambda ends the holder.
ON_THE_WAY_SECONDS = 15
CLAIMS = {
    "sqs:SetQueueAttributes": case_store_claims.CLAIM_SECONDS,
    "sqs:CreateQueue": case_store_claims.CLAIM_SECONDS,
    "sqs:SendMessage": store.CLAIM_SECONDS,
}
LONGEST = max(CLAIMS.values())


def check_claim_durations(template: Template) -> Iterator[str]:
    """A claim outlives the Lambda that holds it, and ends before the intake queue's retries end.

    Two Lambdas never write one attribute, and the claim of a dead Lambda costs no message.
    """
    for name, function in template.all(FUNCTION).items():
        role = function["Properties"]["Role"]
        seconds = function["Properties"]["Timeout"]
        claims = [
            CLAIMS[action] for action in _list_written_actions(template, role) if action in CLAIMS
        ]
        if claims and seconds + ON_THE_WAY_SECONDS >= min(claims):
            yield f"{name} may write for {seconds} s under a claim of {min(claims)} s"
    for name, mapping in template.all(MAPPING).items():
        queue = read_queue(template, mapping["Properties"])
        patience = queue["VisibilityTimeout"] * queue["RedrivePolicy"]["maxReceiveCount"]
        if patience <= LONGEST:
            yield f"{name} gives up after {patience} s, and a claim may last {LONGEST} s"


def _list_written_actions(template: Template, role: str) -> Iterator[str]:
    """Yield the actions that a role is allowed on queues that are not Mendq's own."""
    own = {f"{QUEUE_ARNS}{name}" for name in template.all(QUEUE)}
    for policy in template.all("AWS::IAM::Policy").values():
        if role.removeprefix("arn:") in policy["Properties"]["Roles"]:
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
                if statement["Effect"] == "Allow" and not own.issuperset(
                    as_list(statement["Resource"])
                ):
                    yield from as_list(statement["Action"])
