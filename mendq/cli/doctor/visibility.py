"""Which calls the trails log, and which symptoms they show on which queues; why some are blind.

https://docs.aws.amazon.com/awscloudtrail/latest/userguide/filtering-data-events.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from mendq.catalogue import CATALOGUE
from mendq.catalogue.symptom import SeenAs, Symptom
from mendq.catalogue.visibility_timeout_too_short import VISIBILITY_TIMEOUT_TOO_SHORT
from mendq.cli.account import Account
from mendq.cli.doctor.check import Check, Command, Status
from mendq.model.names import DATA_EVENT_NAMES

_TESTS: dict[str, Callable[[str, str], bool]] = {
    "Equals": str.__eq__,
    "StartsWith": str.startswith,
    "EndsWith": str.endswith,
}
Selector = Mapping[str, Any]
# In place of an ARN: one that the selectors cover.
ANY_QUEUE = "any queue"
OUTSIDE = "no trail logs this queue's calls"
LATE_DELETES_PASS = (
    "a late delete on a standard queue answers 200, so no error shows it: the scan finds the race"  # noqa: S105 - a sentence
)
# The catalogue takes their codes on any call; SQS gives them on calls for a received message alone.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibility.html
VISIBILITY_CALLS = frozenset(
    name for name in DATA_EVENT_NAMES if name.startswith(("DeleteMessage", "ChangeMessage"))
)
# What no selector can change.
NEVER_SEEN = (
    "batch calls answer 200 and list what failed inside: those failures are in no errorCode",
    "whether CloudTrail logs the calls of Lambda's own pollers is not documented",
    "selectors that ask who calls are taken to let your callers in",
)


UNCONFIRMED = "no record of such a call by AWS is known here: `mendq drill --record DIR` gets them"


class Trail(Struct, frozen=True):
    """A trail that is logging, and what it selects."""

    name: str
    selectors: tuple[Selector, ...]

    def logs(self, queue_arn: str, event_name: str) -> bool:
        """Whether the data event of somebody else on that queue is logged."""
        return any(_selects(each, queue_arn, event_name) for each in self.selectors)


def trails_of(account: Account, logging: list[Trail]) -> Iterator[Check]:
    """One check a trail; `logging` takes those that are logging. Raises ClientError."""
    client = account.clients.cloudtrail
    for each in client.describe_trails(includeShadowTrails=True)["trailList"]:
        arn, label = each["TrailARN"], f"trail {each['Name']}"
        if not client.get_trail_status(Name=arn).get("IsLogging"):
            # A trail is switched on where it was made.
            home = each.get("HomeRegion", account.region)
            start = Command.aws(home, "cloudtrail", "start-logging", "--name", arn)
            yield Check(label, Status.WARN, "it is switched off", start)
            continue
        selectors = client.get_event_selectors(TrailName=arn).get("AdvancedEventSelectors", [])
        logging.append(Trail(each["Name"], tuple(selectors)))
        asks = sum(map(_selects_queues, selectors))
        yield Check(label, Status.OK, f"is logging, {asks} selector(s) of SQS data events")
    if not any(_selects_queues(one) for each in logging for one in each.selectors):
        says = "no trail that is logging selects SQS data events: no failed call is seen"
        remedy = "set trail.create and trail.queueArnPrefixes, and deploy"
        yield Check("data events", Status.FAIL, says, remedy)


def _selects_queues(selector: object) -> bool:
    return "AWS::SQS::Queue" in str(selector)


def logged(trails: Sequence[Trail], queue_arn: str, event_names: Iterable[str]) -> frozenset[str]:
    """Those of the events that any of the trails logs."""
    return frozenset(e for e in event_names if any(each.logs(queue_arn, e) for each in trails))


def _selects(selector: Selector, queue_arn: str, event_name: str) -> bool:
    """Fields that say who calls, or read or write, are taken to fit: they are not known here."""
    queue = {} if queue_arn == ANY_QUEUE else {"resources.ARN": queue_arn}
    call = {
        "eventCategory": "Data",
        "resources.type": "AWS::SQS::Queue",
        **queue,
        "eventName": event_name,
        "eventSource": "sqs.amazonaws.com",
    }
    fields = selector.get("FieldSelectors", [])
    named = {each["Field"] for each in fields}
    return {"eventCategory", "resources.type"} <= named and all(
        _fits(each, call[each["Field"]]) for each in fields if each["Field"] in call
    )


def _fits(field: Mapping[str, Any], value: str) -> bool:
    for operator, test in _TESTS.items():
        wanted = field.get(operator)
        if wanted and not any(test(value, each) for each in wanted):
            return False
        if any(test(value, each) for each in field.get(f"Not{operator}") or ()):
            return False
    return True


class Situation(Struct, frozen=True):
    """One symptom over all managed queues; `blind` and `partly` give the reason by queue.

    `by_calls` tells whether calls show it, `by_the_scan` whether the scan finds it;
    `unconfirmed_on_aws` whether how AWS records those calls is still an assumption.
    """

    symptom: str
    visible: tuple[str, ...]
    partly: dict[str, str]
    blind: dict[str, str]
    by_calls: bool
    by_the_scan: bool
    unconfirmed_on_aws: bool


def sights(trails: Sequence[Trail], queue_arns: Sequence[str]) -> Iterator[Situation]:
    """One for every symptom of the catalogue."""
    for symptom in CATALOGUE:
        asked = [arn for arn in queue_arns if _ways(symptom, arn)]
        whys = {arn: why_not(symptom, trails, arn) for arn in asked}
        yield Situation(
            symptom.name,
            tuple(arn for arn, (why, _) in whys.items() if why is None),
            {arn: why for arn, (why, is_blind) in whys.items() if why and not is_blind},
            {arn: why for arn, (why, is_blind) in whys.items() if why and is_blind},
            by_calls=bool(symptom.seen_as),
            by_the_scan=symptom.detection is not None,
            unconfirmed_on_aws=symptom.is_unconfirmed,
        )


def why_not(symptom: Symptom, trails: Sequence[Trail], queue_arn: str) -> tuple[str | None, bool]:
    """Why a symptom is not fully visible on a queue (None: it is), and whether it is blind."""
    seen = logged(trails, queue_arn, DATA_EVENT_NAMES)
    if not seen:
        return OUTSIDE, True
    wanted = calls_of(symptom, queue_arn)
    missing = sorted(wanted - seen)
    if missing:
        return f"not logged: {', '.join(missing)}", not wanted & seen
    if symptom is VISIBILITY_TIMEOUT_TOO_SHORT and not queue_arn.endswith(".fifo"):
        return LATE_DELETES_PASS, False
    return None, False


def calls_of(symptom: Symptom, queue_arn: str) -> frozenset[str]:
    """The data events by which a symptom shows on that queue."""
    late = symptom is VISIBILITY_TIMEOUT_TOO_SHORT
    every = VISIBILITY_CALLS if late else frozenset(DATA_EVENT_NAMES)
    ways = _ways(symptom, queue_arn)
    return frozenset().union(*(every & (each.event_names or every) for each in ways))


def _ways(symptom: Symptom, queue_arn: str) -> list[SeenAs]:
    return [each for each in symptom.seen_as if queue_arn == ANY_QUEUE or each.on(queue_arn)]


def not_logged(trails: Sequence[Trail], queue_arns: Sequence[str]) -> dict[str, frozenset[str]]:
    """By queue, the calls by which a symptom would show and that no trail logs."""
    found = {}
    for arn in queue_arns:
        wanted = frozenset().union(*(calls_of(each, arn) for each in CATALOGUE))
        found[arn] = wanted - logged(trails, arn, wanted)
    return {arn: missing for arn, missing in found.items() if missing}


def outside(trails: Sequence[Trail], queue_arns: Sequence[str]) -> list[str]:
    """The queues of which no call is logged."""
    return [each for each in queue_arns if not logged(trails, each, DATA_EVENT_NAMES)]
