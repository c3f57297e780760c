"""Lines about a queue for notifications: failed calls, configuration, changes, the timeline.

Every text that another party may have written goes through `to_plain_text` or `format_value`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from mendq.model.facts import Facts, function_name
from mendq.model.policy import QueueChange
from mendq.model.timeline import TimelinePoint
from mendq.notifications.change_lines import format_attribute_value
from mendq.notifications.configuration import (
    NOT_SET_TEXT,
    Baseline,
    describe_differences,
    select_configuration,
)
from mendq.notifications.text import (
    format_duration,
    format_utc_time,
    format_value,
    limit_lines,
    to_plain_text,
)

# The most lines, names and addresses that are shown; further ones are counted.
_MOST_SHOWN_LINES = 20
_MOST_SHOWN_NAMES = 5
_MOST_SHOWN_ORIGINS = 2
# The most characters of an attribute's value.
_MOST_VALUE_CHARACTERS = 1_000
# The most characters of a point of the timeline: enough for the two numbers in
# `applied: MessageRetentionPeriod 345600 -> 1209600`.
_MOST_POINT_CHARACTERS = 50
# The width of the longest bar, in characters.
_LONGEST_BAR_CHARACTERS = 24
# If nothing changed since a baseline that is older than this, no earlier baseline is compared.
RECENT_BASELINE_AGE = timedelta(days=7)

_SHOWN_ATTRIBUTES = (
    "VisibilityTimeout",
    "MessageRetentionPeriod",
    "RedrivePolicy",
    "KmsMasterKeyId",
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
)


def describe_failed_calls(
    evidence: Mapping[str, Any], event_names: Iterable[str]
) -> tuple[str, ...]:
    """Return lines about the failed calls: names, number, first and last call, and callers.

    Args:
        evidence: The document of a case's evidence.
        event_names: More names of failed calls, besides those in the evidence.
    """
    if not evidence.get("failed_calls"):
        return ("no failed call: the queue's own settings or metrics show it",)
    operations = {request.get("operation") for request in evidence.get("requests", ())}
    call_names = sorted({*filter(None, operations), *event_names})
    call_names_text = ", ".join(
        limit_lines((format_value(name, 64) for name in call_names), _MOST_SHOWN_NAMES)
    )
    principal_lines = (
        f"by {format_value(principal)}" for principal in evidence.get("principals", ())
    )
    call_count_text = f"{to_plain_text(evidence['failed_calls'], 12)} failed calls"
    return (
        f"{call_count_text}: {call_names_text}" if call_names_text else call_count_text,
        f"from {_describe_first_or_last_call(evidence, 'first')}",
        f"to   {_describe_first_or_last_call(evidence, 'last')}",
        *limit_lines(principal_lines, _MOST_SHOWN_NAMES),
        *_describe_call_origins(evidence),
    )


def _describe_call_origins(evidence: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines with the addresses and the programs from which the failed calls came.

    The first _MOST_SHOWN_ORIGINS addresses and programs are named, and the others are counted.
    """
    requests = evidence.get("requests", ())
    for field_name, line_prefix in (("source_ip", "from address"), ("user_agent", "with")):
        call_origins = dict.fromkeys(
            request[field_name] for request in requests if field_name in request
        )
        yield from limit_lines(
            (f"{line_prefix} {format_value(call_origin)}" for call_origin in call_origins),
            _MOST_SHOWN_ORIGINS,
        )


def _describe_first_or_last_call(evidence: Mapping[str, Any], first_or_last: str) -> str:
    """Return the time and the request id of the `first` or the `last` failed call as text."""
    request_id = format_value(evidence.get(f"{first_or_last}_request_id"), 64)
    return f"{_format_evidence_time(evidence.get(f'{first_or_last}_at'))}, request {request_id}"


def describe_facts(
    steps: Iterable[Mapping[str, str]], facts: Facts, always_shown_names: tuple[str, ...]
) -> tuple[str, ...]:
    """Return lines with the queue's attributes that matter and its Mendq tags, as they are now.

    These are the attributes of the two arguments and _SHOWN_ATTRIBUTES.

    Args:
        steps: The documents of a case's steps. The attributes that they change are shown if they
            are set.
        facts: The queue's facts. They have no attributes if the queue was deleted.
        always_shown_names: Names of attributes that are shown even if they are not set.
    """
    attributes = facts.attributes
    tags = facts.tags
    if not attributes:
        return ("the queue is gone, or its attributes could not be read",)
    attribute_names = dict.fromkeys(
        (*always_shown_names, *(step["attribute"] for step in steps), *_SHOWN_ATTRIBUTES)
    )
    attribute_lines: list[str] = []
    for name in attribute_names:
        value_text = attributes.get(name)
        if value_text:
            attribute_lines.append(
                f"{to_plain_text(name, 64)}: "
                f"{format_attribute_value(name, value_text, _MOST_VALUE_CHARACTERS)}"
            )
        elif name in always_shown_names:
            attribute_lines.append(f"{to_plain_text(name, 64)}: {NOT_SET_TEXT}")
    if not attribute_lines:
        attribute_lines = ["nothing of what matters here is set"]
    mendq_tag_keys = sorted(key for key in tags if key == "mendq" or key.startswith("mendq:"))
    tag_lines = (
        f"tag {format_value(key, 64)} = {format_value(tags[key], 64)}" for key in mendq_tag_keys
    )
    return (
        *limit_lines(attribute_lines, _MOST_SHOWN_LINES),
        *limit_lines(tag_lines, _MOST_SHOWN_NAMES),
    )


# A baseline also holds tags and consumers. Their names begin with these, so that they differ from
# the names of attributes.
TAG_NAME_PREFIX = "tag "
CONSUMER_NAME_PREFIX = "consumer "
TAG_AND_CONSUMER_PREFIXES = (TAG_NAME_PREFIX, CONSUMER_NAME_PREFIX)


def describe_configuration(facts: Facts) -> dict[str, str]:
    """Return the queue's attributes, tags and consumers by name, as a baseline stores them.

    Tags of AWS (`aws:...`) are left out, because no person sets them. The result is empty if the
    queue was deleted.
    """
    if not facts.exists:
        return {}
    text_by_configuration_name = dict(facts.attributes)
    for tag_key, tag_value in facts.tags.items():
        if not tag_key.startswith("aws:"):
            text_by_configuration_name[f"{TAG_NAME_PREFIX}{tag_key}"] = tag_value or '""'
    for function_arn in facts.stopped_consumers:
        text_by_configuration_name[f"{CONSUMER_NAME_PREFIX}{function_name(function_arn)}"] = (
            "stopped"
        )
    for consumer in facts.lambda_consumers:
        batching_window_text = f"batching window {consumer.batching_window_seconds} s"
        timeout_text = f"timeout {consumer.timeout_seconds} s"
        text_by_configuration_name[f"{CONSUMER_NAME_PREFIX}{consumer.name}"] = (
            f"{timeout_text}, {batching_window_text}"
        )
    return select_configuration(text_by_configuration_name)


def compare_with_baselines(
    baselines: Sequence[Baseline], facts: Facts, now: datetime
) -> Iterator[str]:
    """Yield lines with the differences between the queue and its newest baseline.

    If nothing differs and the newest baseline is at most a week old, the baseline before it is
    compared as well. If the queue was deleted, its whole configuration is a difference.

    Args:
        baselines: The queue's baselines, newest first.
        facts: The queue's facts. If an existing queue has no tags (or no consumers) in them, these
            are not compared, because they may not have been read.
        now: The time of the notification.
    """
    has_consumers = bool(facts.lambda_consumers or facts.stopped_consumers)
    compared_kinds = ["attributes"]
    left_out_prefixes: list[str] = []
    for name_prefix, is_kind_read in (
        (TAG_NAME_PREFIX, bool(facts.tags)),
        (CONSUMER_NAME_PREFIX, has_consumers),
    ):
        if facts.exists and not is_kind_read:
            left_out_prefixes.append(name_prefix)
        else:
            compared_kinds.append(f"{name_prefix.strip()}s")
    for baseline in baselines[:2]:
        configuration_at_baseline = {
            name: text
            for name, text in baseline.attributes.items()
            if not name.startswith(tuple(left_out_prefixes))
        }
        difference_lines = describe_differences(
            configuration_at_baseline, describe_configuration(facts)
        )
        yield _describe_baseline(baseline, compared_kinds, has_changed=bool(difference_lines))
        yield from limit_lines(difference_lines, _MOST_SHOWN_LINES)
        if difference_lines or now - baseline.at > RECENT_BASELINE_AGE:
            return


def _describe_baseline(
    baseline: Baseline, compared_kinds: Sequence[str], *, has_changed: bool
) -> str:
    """Return the line that says when a scan found the queue healthy, and if it was changed since.

    `compared_kinds` names the compared parts of the configuration, such as `attributes`.
    """
    compared_kinds_text = ", ".join(compared_kinds)
    scan_result_text = f"a scan found it well at {format_utc_time(baseline.at)}"
    if has_changed:
        return f"{scan_result_text}; changed since, of its {compared_kinds_text}:"
    return f"{scan_result_text}; nothing changed since of its {compared_kinds_text}"


def describe_last_change(last_change: QueueChange | str | None) -> tuple[str, ...]:
    """Return lines about who changed the queue last, when, and which attributes.

    `last_change` is None if CloudTrail has no change, and a text with the reason if CloudTrail
    could not be asked.
    """
    if last_change is None:
        return ("nobody in the 90 days that CloudTrail keeps; it may lag by minutes",)
    if isinstance(last_change, str):
        return (f"not known: {to_plain_text(last_change, 300)}",)
    earlier_lines = [
        f"before: {describe_queue_change(change)} by {format_value(change.principal_arn)}"
        for change in last_change.earlier_changes
    ]
    return (
        format_value(last_change.principal_arn),
        describe_queue_change(last_change),
        *earlier_lines,
    )


def describe_queue_change(change: QueueChange) -> str:
    """Return a line about one change: the call, its time, and the attributes that it set."""
    attribute_texts = (format_value(attribute, 64) for attribute in change.attributes)
    attribute_names_text = ", ".join(limit_lines(attribute_texts, _MOST_SHOWN_NAMES))
    call_text = f"{format_value(change.event_name, 64)} at {format_utc_time(change.at)}"
    return f"{call_text}: {attribute_names_text}" if attribute_names_text else call_text


def _format_evidence_time(text: object) -> str:
    """Return a time of the evidence as text for people. Another text is made safe and returned."""
    try:
        return format_utc_time(datetime.fromisoformat(str(text)))
    except (ValueError, OverflowError):
        return format_value(text, 40)


def format_timeline(
    timeline_points: Sequence[TimelinePoint], most_characters: int = _MOST_POINT_CHARACTERS
) -> list[tuple[str, str]]:
    """Return a case's timeline: for each point, a text with its time and a text with its name.

    The first text also has the time since the first point. The second text also has the point's
    details, and is cut at `most_characters`. `timeline_points` must not be empty.
    """
    elapsed_time_texts = [
        f"+{format_duration(point.at - timeline_points[0].at)}" for point in timeline_points
    ]
    elapsed_time_width = max(len(elapsed_time_text) for elapsed_time_text in elapsed_time_texts)
    timeline_lines: list[tuple[str, str]] = []
    for point, elapsed_time_text in zip(timeline_points, elapsed_time_texts, strict=True):
        time_text = f"{point.at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
        point_text = f"{point.words}: {point.details}" if point.details else point.words
        timeline_lines.append(
            (
                f"{time_text}  {elapsed_time_text:>{elapsed_time_width}}",
                to_plain_text(point_text, most_characters),
            )
        )
    return timeline_lines


def draw_time_bars(named_time_spans: Sequence[tuple[str, float]]) -> list[tuple[str, str]]:
    """Return the name, and the seconds with a bar, for each time span. All bars have one scale.

    `named_time_spans` are pairs of a name and a number of seconds: the time that consumers need,
    and the time that they have.
    """
    if not named_time_spans:
        return []
    name_width = min(64, max(len(name) for name, _ in named_time_spans))
    longest_seconds = max(seconds for _, seconds in named_time_spans)
    names_and_bars: list[tuple[str, str]] = []
    for name, seconds in named_time_spans:
        bar = "=" * round(_LONGEST_BAR_CHARACTERS * seconds / longest_seconds)
        names_and_bars.append(
            (f"{to_plain_text(name, 64):{name_width}}", f"{seconds:>7,g} s {bar}")
        )
    return names_and_bars
