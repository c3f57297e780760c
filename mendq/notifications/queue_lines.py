"""Lines about a queue for notifications: failed calls, configuration, changes, the timeline.

Every text that another party may have written goes through `plain` or `value`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from mendq.model.facts import Facts, function_name
from mendq.model.policy import QueueChange
from mendq.model.timeline import TimelinePoint
from mendq.notifications.change_lines import with_unit
from mendq.notifications.configuration import NOT_SET, Baseline, differences, select_configuration
from mendq.notifications.text import first_of, moment, plain, span, value

# The most lines, names and addresses that are shown; further ones are counted.
_MOST_LINES = 20
_MOST_NAMED = 5
_MOST_FROM = 2
# The most characters of an attribute's value.
_MOST_SHOWN = 1_000
# The most characters of a point of the timeline: enough for the two numbers in
# `applied: MessageRetentionPeriod 345600 -> 1209600`.
_MOST_OF_A_POINT = 50
# The width of the longest bar, in characters.
_MOST_BAR = 24
# If nothing changed since a baseline that is older than this, no earlier baseline is compared.
CHANGED_LATELY = timedelta(days=7)

_FACTS = (
    "VisibilityTimeout",
    "MessageRetentionPeriod",
    "RedrivePolicy",
    "KmsMasterKeyId",
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
)


def evidence_lines(evidence: Mapping[str, Any], event_names: Iterable[str]) -> tuple[str, ...]:
    """Return lines about the failed calls: which, how many, from when to when, and by whom.

    Args:
        evidence: The document of a case's evidence.
        event_names: More names of failed calls, besides those in the evidence.
    """
    if not evidence.get("failed_calls"):
        return ("no failed call: the queue's own settings or metrics show it",)
    operations = {request.get("operation") for request in evidence.get("requests", ())}
    names = sorted({*filter(None, operations), *event_names})
    calls = ", ".join(first_of((value(name, 64) for name in names), _MOST_NAMED))
    principals = (f"by {value(principal)}" for principal in evidence.get("principals", ()))
    count = f"{plain(evidence['failed_calls'], 12)} failed calls"
    return (
        f"{count}: {calls}" if calls else count,
        f"from {_describe_call(evidence, 'first')}",
        f"to   {_describe_call(evidence, 'last')}",
        *first_of(principals, _MOST_NAMED),
        *_origin_lines(evidence),
    )


def _origin_lines(evidence: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines with the addresses and the programs from which the failed calls came."""
    requests = evidence.get("requests", ())
    for name, words in (("source_ip", "from address"), ("user_agent", "with")):
        origins = dict.fromkeys(request[name] for request in requests if name in request)
        yield from first_of((f"{words} {value(origin)}" for origin in origins), _MOST_FROM)


def _describe_call(evidence: Mapping[str, Any], which: str) -> str:
    """Return time and request id of the `first` or the `last` failed call."""
    request_id = value(evidence.get(f"{which}_request_id"), 64)
    return f"{_read_moment(evidence.get(f'{which}_at'))}, request {request_id}"


def facts_lines(
    steps: Iterable[Mapping[str, str]], facts: Facts, shown: tuple[str, ...]
) -> tuple[str, ...]:
    """Return lines with the queue's attributes and its Mendq tags as they are now.

    Args:
        steps: The documents of a case's steps. The attributes that they change are shown.
        facts: The queue's facts. They have no attributes if the queue was deleted.
        shown: Names of attributes that are shown even if they are not set.
    """
    attributes = facts.attributes
    tags = facts.tags
    if not attributes:
        return ("the queue is gone, or its attributes could not be read",)
    names = dict.fromkeys((*shown, *(step["attribute"] for step in steps), *_FACTS))
    lines: list[str] = []
    for name in names:
        text = attributes.get(name)
        if text:
            lines.append(f"{plain(name, 64)}: {with_unit(name, text, _MOST_SHOWN)}")
        elif name in shown:
            lines.append(f"{plain(name, 64)}: {NOT_SET}")
    if not lines:
        lines = ["nothing of what matters here is set"]
    mendq_tags = sorted(key for key in tags if key == "mendq" or key.startswith("mendq:"))
    tag_lines = (f"tag {value(key, 64)} = {value(tags[key], 64)}" for key in mendq_tags)
    return (*first_of(lines, _MOST_LINES), *first_of(tag_lines, _MOST_NAMED))


# A baseline also holds tags and consumers. Their names begin with these, so that they differ from
# the names of attributes.
TAG = "tag "
CONSUMER = "consumer "
BESIDE = (TAG, CONSUMER)


def describe_configuration(facts: Facts) -> dict[str, str]:
    """Return the queue's configuration with its tags and its consumers, as a baseline stores it.

    Tags of CloudFormation (`aws:...`) are left out, because no person sets them. Return an empty
    configuration if the queue was deleted.
    """
    if not facts.exists:
        return {}
    configuration = dict(facts.attributes)
    for key, text in facts.tags.items():
        if not key.startswith("aws:"):
            configuration[f"{TAG}{key}"] = text or '""'
    for function_arn in facts.stopped_consumers:
        configuration[f"{CONSUMER}{function_name(function_arn)}"] = "stopped"
    for consumer in facts.lambda_consumers:
        window = f"batching window {consumer.batching_window_seconds} s"
        timeout = f"timeout {consumer.timeout_seconds} s"
        configuration[f"{CONSUMER}{consumer.name}"] = f"{timeout}, {window}"
    return select_configuration(configuration)


def baseline_lines(baselines: Sequence[Baseline], facts: Facts, now: datetime) -> Iterator[str]:
    """Yield lines with the differences between the queue and its newest baseline.

    If there are none and the newest baseline is at most a week old, the one before it is compared
    as well. If the queue was deleted, everything that it had is a difference.

    Args:
        baselines: The queue's baselines, newest first.
        facts: The queue's facts. Tags and consumers are compared only if the facts have some,
            because they may not have been read.
        now: The time of the notification.
    """
    compared = ["attributes"]
    not_compared: list[str] = []
    for prefix, has_some in (
        (TAG, bool(facts.tags)),
        (CONSUMER, bool(facts.lambda_consumers or facts.stopped_consumers)),
    ):
        if facts.exists and not has_some:
            not_compared.append(prefix)
        else:
            compared.append(f"{prefix.strip()}s")
    names = ", ".join(compared)
    for baseline in baselines[:2]:
        then = {
            name: text
            for name, text in baseline.attributes.items()
            if not name.startswith(tuple(not_compared))
        }
        lines = first_of(differences(then, describe_configuration(facts)), _MOST_LINES)
        found_well = f"a scan found it well at {moment(baseline.at)}"
        if lines:
            yield f"{found_well}; changed since, of its {names}:"
        else:
            yield f"{found_well}; nothing changed since of its {names}"
        yield from lines
        if lines or now - baseline.at > CHANGED_LATELY:
            return


def changed_last_lines(last_change: QueueChange | str | None) -> tuple[str, ...]:
    """Return lines about who changed the queue last, when, and which attributes.

    `last_change` is None if CloudTrail has no change, and the reason if it could not be asked.
    """
    if last_change is None:
        return ("nobody in the 90 days that CloudTrail keeps; it may lag by minutes",)
    if isinstance(last_change, str):
        return (f"not known: {plain(last_change, 300)}",)
    earlier_lines = [
        f"before: {change_line(change)} by {value(change.principal_arn)}"
        for change in last_change.earlier
    ]
    return (value(last_change.principal_arn), change_line(last_change), *earlier_lines)


def change_line(change: QueueChange) -> str:
    """Return a line about one change: the call, its time, and the attributes that it set."""
    attributes = (value(attribute, 64) for attribute in change.attributes)
    names = ", ".join(first_of(attributes, _MOST_NAMED))
    call = f"{value(change.event_name, 64)} at {moment(change.at)}"
    return f"{call}: {names}" if names else call


def _read_moment(text: object) -> str:
    """Return a time of the evidence for people, or the text itself if it is no time."""
    try:
        return moment(datetime.fromisoformat(str(text)))
    except (ValueError, OverflowError):
        return value(text, 40)


def timeline_lines(
    points: Sequence[TimelinePoint], most: int = _MOST_OF_A_POINT
) -> list[tuple[str, str]]:
    """Return a case's timeline: for each point, its time and the words about it.

    The time is in UTC, with the time since the first point. The words are cut at `most` characters.
    """
    delays = [f"+{span(point.at - points[0].at)}" for point in points]
    width = max(len(delay) for delay in delays)
    lines: list[tuple[str, str]] = []
    for point, delay in zip(points, delays, strict=True):
        at = f"{point.at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
        words = f"{point.words}: {point.says}" if point.says else point.words
        lines.append((f"{at}  {delay:>{width}}", plain(words, most)))
    return lines


def draw_bars(spans: Sequence[tuple[str, float]]) -> list[tuple[str, str]]:
    """Return a bar of text for each time span, with its name on the left.

    `spans` are names with seconds: the time that consumers need, and the time that they have.
    """
    if not spans:
        return []
    width = min(64, max(len(name) for name, _ in spans))
    longest = max(seconds for _, seconds in spans)
    bars: list[tuple[str, str]] = []
    for name, seconds in spans:
        bar = "=" * round(_MOST_BAR * seconds / longest)
        bars.append((f"{plain(name, 64):{width}}", f"{seconds:>7,g} s {bar}"))
    return bars
