"""Which calls the trails log, and which symptoms they show on which queues; why some are blind.

https://docs.aws.amazon.com/awscloudtrail/latest/userguide/filtering-data-events.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct, structs

from mendq.catalogue import CATALOGUE
from mendq.catalogue.symptom import SeenAs, Symptom
from mendq.catalogue.visibility.visibility_timeout_too_short import VISIBILITY_TIMEOUT_TOO_SHORT
from mendq.cli.account import Account
from mendq.cli.doctor.check import Check, Command, Status, guarded, judged
from mendq.cli.output import shorten_list
from mendq.model.names import DATA_EVENT_NAMES, PROBE, role_name
from mendq.model.queue import partition_of
from mendq.probe.probe import EVENT_NAME, QUEUE_NAME

_TESTS: dict[str, Callable[[str, str], bool]] = {
    "Equals": str.__eq__,
    "StartsWith": str.startswith,
    "EndsWith": str.endswith,
}
Selector = Mapping[str, Any]
CallsByQueue = Mapping[str, frozenset[str]]
UNKNOWN = Status.UNKNOWN
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
    """A trail, and what it selects while it is logging; None: AWS does not say.

    It does not say so of an organization's trail to its members. `root` is what `AWSLogs` lies in:
    a bucket, and the prefix that the trail has there.
    """

    name: str
    selectors: tuple[Selector, ...] | None
    root: str = ""

    def logs(self, queue_arn: str, event_name: str, known: Mapping[str, str] | None = None) -> bool:
        """Whether the data event of somebody else on that queue is logged.

        Of `known` are fields of the event that say more, such as who calls.
        """
        return any(_selects(e, queue_arn, event_name, known or {}) for e in self.selectors or ())


def trails_of(account: Account, found: list[Trail]) -> Iterator[Check]:
    """The checks of each trail, which `found` takes, and one whether any logs the probe.

    One that cannot be read costs only itself. Raises ClientError where they cannot be listed.
    """
    answer = account.clients.cloudtrail.describe_trails(includeShadowTrails=True)
    for each in answer["trailList"]:
        root = f"{each.get('S3BucketName')}/{each.get('S3KeyPrefix', '')}".rstrip("/")
        found.append(Trail(each["Name"], None, root))
        owner, look = each["TrailARN"].split(":")[4], partial(_trail, account, each, found)
        for check in guarded(f"trail {each['Name']}", look):
            is_theirs = check.status is UNKNOWN and owner != account.settings.account
            ask = f"ask account {owner}, whose trail it is, what it selects"
            yield structs.replace(check, remedy=ask) if is_theirs else check
    yield _logs_the_probe(account, found)


def _trail(account: Account, described: Any, found: list[Trail]) -> Iterator[Check]:
    client, arn = account.clients.cloudtrail, described["TrailARN"]
    selectors = list[Any]()
    if is_logging := client.get_trail_status(Name=arn).get("IsLogging"):
        answer = client.get_event_selectors(TrailName=arn)
        selectors += answer.get("AdvancedEventSelectors", ())
    found[-1] = structs.replace(found[-1], selectors=tuple(selectors))
    asks = sum("AWS::SQS::Queue" in str(each) for each in selectors)
    # A trail is switched on where it was made.
    home = described.get("HomeRegion", account.region)
    start = Command.aws(home, "cloudtrail", "start-logging", "--name", arn)
    yield judged(
        f"trail {described['Name']}",
        (not is_logging, Status.WARN, "it is switched off", start),
        (True, Status.OK, f"is logging, {asks} selector(s) of SQS data events", ""),
    )


def _logs_the_probe(account: Account, trails: Sequence[Trail]) -> Check:
    """Whether a trail logs the probe's own call, as CloudTrail evaluates selectors."""
    here, whose, names = account.region, account.settings.account, unread(trails)
    arn = f"arn:{partition_of(here)}:sqs:{here}:{whose}:{QUEUE_NAME}"
    role, session = role_name(PROBE, here), account.outputs.get("ProbeFunction", "")
    caller = f"arn:{partition_of(here)}:sts::{whose}:assumed-role/{role}/{session}"
    call = {"userIdentity.arn": caller, "readOnly": "false", "eventType": "AwsApiCall"}
    logging = [each.name for each in trails if each.logs(arn, EVENT_NAME, call)]
    missing = f"no trail that is logging selects {EVENT_NAME} of {QUEUE_NAME}: no probe is seen"
    return judged(
        "probe's trail",
        (logging, Status.OK, f"{shorten_list(logging)} logs the probe's queue", ""),
        (
            names,
            UNKNOWN,
            f"{shorten_list(names)} cannot be read",
            "the check `probe` says what comes",
        ),
        (True, Status.FAIL, missing, f"have a trail log SQS data events of {arn}, or deploy"),
    )


def read_by_the_job(root: str, trails: Sequence[Trail], queue_arns: Sequence[str]) -> Check:
    """Whether all that is logged of these queues lies where the nightly job reads.

    A trail elsewhere is nobody's concern while it logs nothing of theirs that is not there too.
    What no trail writes there, AWS or somebody may still copy, out of another bucket.
    """
    there = [each for each in trails if each.root == root]
    missed = _lacking(there, {e: logged(trails, e, DATA_EVENT_NAMES) for e in queue_arns})
    apart = {
        e.root for e in trails if not there or any(logged([e], *row) for row in missed.items())
    }
    beside = any(e.root.partition("/")[0] == root.partition("/")[0] for e in trails)
    whose = shorten_list([arn.rpartition(":")[2] for arn in missed])
    what = f"calls of {whose} are logged to" if missed else "the trails write to"
    misses = f"the nightly job reads {root}, and {what} {shorten_list(sorted(apart))} alone"
    remedy = "say in trail.bucket and trail.prefix where all of it lies, and deploy"
    names = shorten_list([trail.name for trail in there])
    reads = f"the nightly job reads {root}, where the files of {names} lie"
    return judged(
        "files of the trail",
        (missed and unread(there), UNKNOWN, f"{misses}, as far as trails can be read", ""),
        ((missed or not there) and beside, Status.FAIL, misses, remedy),
        (not there, Status.WARN, f"{misses}: it counts what is copied, if anything", remedy),
        (True, Status.OK, reads, ""),
    )


def unread(trails: Sequence[Trail]) -> list[str]:
    """The trails of which it is not known what they log."""
    return [each.name for each in trails if each.selectors is None]


def logged(trails: Sequence[Trail], queue_arn: str, event_names: Iterable[str]) -> frozenset[str]:
    """Those of the events that any of the trails logs."""
    return frozenset(e for e in event_names if any(each.logs(queue_arn, e) for each in trails))


def _selects(selector: Selector, queue_arn: str, event_name: str, known: Mapping[str, str]) -> bool:
    """Fields that are not known are taken to fit, such as who calls, or read or write."""
    queue = {} if queue_arn == ANY_QUEUE else {"resources.ARN": queue_arn}
    call = {
        "eventCategory": "Data",
        "resources.type": "AWS::SQS::Queue",
        **queue,
        "eventName": event_name,
        "eventSource": "sqs.amazonaws.com",
        **known,
    }
    fields = selector.get("FieldSelectors", [])
    named = {each["Field"] for each in fields}
    return {"eventCategory", "resources.type"} <= named and all(
        fits(each, call[each["Field"]]) for each in fields if each["Field"] in call
    )


def fits(field: Mapping[str, Any], value: str) -> bool:
    """Any operator that selects is enough, where there are any, and none that deselects may fit."""
    selects = {name: field[name] for name in _TESTS if field.get(name)}
    chosen = (_TESTS[name](value, each) for name, some in selects.items() for each in some)
    left_out = (_TESTS[n](value, each) for n in _TESTS for each in field.get(f"Not{n}") or ())
    return (not selects or any(chosen)) and not any(left_out)


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
    wanted = calls_of(symptom, queue_arn)
    missing = sorted(wanted - seen)
    if missing and (names := unread(trails)):
        return f"not known: {', '.join(names)} cannot be read", False
    if not seen:
        return OUTSIDE, True
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
    return [
        each for each in symptom.seen_as if queue_arn == ANY_QUEUE or each.fits_queue(queue_arn)
    ]


def not_logged(trails: Sequence[Trail], queue_arns: Sequence[str]) -> dict[str, frozenset[str]]:
    """By queue, the calls by which a symptom would show and that no trail logs.

    None while a trail cannot be read: it may log them.
    """
    asked = () if unread(trails) else queue_arns
    by_symptom = {arn: (calls_of(each, arn) for each in CATALOGUE) for arn in asked}
    return _lacking(trails, {arn: frozenset().union(*by_symptom[arn]) for arn in asked})


def _lacking(trails: Sequence[Trail], wanted: CallsByQueue) -> dict[str, frozenset[str]]:
    """Those of the wanted calls that none of the trails logs; without queues that lack none."""
    missing = {arn: calls - logged(trails, arn, calls) for arn, calls in wanted.items()}
    return {arn: calls for arn, calls in missing.items() if calls}


def outside(trails: Sequence[Trail], queue_arns: Sequence[str]) -> list[str]:
    """The queues of which no call is logged; none while a trail cannot be read."""
    asked = () if unread(trails) else queue_arns
    return [each for each in asked if not logged(trails, each, DATA_EVENT_NAMES)]
