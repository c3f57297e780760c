"""A queue in words: what failed, how it is configured, what has changed and by whom."""

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

_MOST_LINES = 20
_MOST_NAMED = 5
_MOST_FROM = 2
_MOST_SHOWN = 1_000
# As long as `applied: MessageRetentionPeriod 345600 -> 1209600`: the numbers are what counts.
_MOST_OF_A_POINT = 50
_MOST_BAR = 24
# So long a change is still the first thing to look at.
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
    """Which calls failed, from when to when, and whose."""
    if not evidence.get("failed_calls"):
        return ("no failed call: the queue's own settings or metrics show it",)
    known = {each.get("operation") for each in evidence.get("requests", ())}
    names = sorted({*filter(None, known), *event_names})
    calls = ", ".join(first_of((value(each, 64) for each in names), _MOST_NAMED))
    principals = (f"by {value(each)}" for each in evidence.get("principals", ()))
    return (
        f"{plain(evidence['failed_calls'], 12)} failed calls" + (f": {calls}" if calls else ""),
        f"from {_sighting(evidence, 'first')}",
        f"to   {_sighting(evidence, 'last')}",
        *first_of(principals, _MOST_NAMED),
        *_came_from(evidence),
    )


def _came_from(evidence: Mapping[str, Any]) -> Iterator[str]:
    for name, words in (("source_ip", "from address"), ("user_agent", "with")):
        said = {each[name]: None for each in evidence.get("requests", ()) if name in each}
        yield from first_of((f"{words} {value(each)}" for each in said), _MOST_FROM)


def _sighting(evidence: Mapping[str, Any], which: str) -> str:
    at, request_id = evidence.get(f"{which}_at"), evidence.get(f"{which}_request_id")
    return f"{_read_moment(at)}, request {value(request_id, 64)}"


def facts_lines(
    steps: Iterable[Mapping[str, str]], facts: Facts, shown: tuple[str, ...]
) -> tuple[str, ...]:
    attributes, tags = facts.attributes, facts.tags
    if not attributes:
        return ("the queue is gone, or its attributes could not be read",)
    names = dict.fromkeys((*shown, *(each["attribute"] for each in steps), *_FACTS))
    lines = [
        f"{plain(name, 64)}: {_standing(attributes.get(name), name)}"
        for name in names
        if attributes.get(name) or name in shown
    ]
    ours = sorted(key for key in tags if key == "mendq" or key.startswith("mendq:"))
    tagged = (f"tag {value(key, 64)} = {value(tags[key], 64)}" for key in ours)
    lines = lines or ["nothing of what matters here is set"]
    return (*first_of(lines, _MOST_LINES), *first_of(tagged, _MOST_NAMED))


def _standing(text: str | None, name: str) -> str:
    return with_unit(name, text, _MOST_SHOWN) if text else NOT_SET


# How what is no attribute of the queue is named in a baseline.
BESIDE = TAG, CONSUMER = "tag ", "consumer "


def describe_configuration(facts: Facts) -> dict[str, str]:
    """What somebody chose of a queue, its tags and its consumers; empty where it is gone.

    CloudFormation's own tags are left out, which no person sets.
    """
    if not facts.exists:
        return {}
    tags = {f"{TAG}{key}": text or '""' for key, text in facts.tags.items() if key[:4] != "aws:"}
    consumers = {f"{CONSUMER}{function_name(each)}": "stopped" for each in facts.stopped_consumers}
    for each in facts.lambda_consumers:
        window = f", batching window {each.batching_window_seconds} s"
        consumers[f"{CONSUMER}{each.name}"] = f"timeout {each.timeout_seconds} s{window}"
    return select_configuration({**facts.attributes, **tags, **consumers})


def baseline_lines(baselines: Sequence[Baseline], facts: Facts, now: datetime) -> Iterator[str]:
    """What differs from how a scan found it well, `baselines` newest first; all where it is gone.

    Where it stands as the newest, and that is young, what was before is said too. Tags and
    consumers are compared where `facts` shows any: they may not have been asked for.
    """
    read = {TAG: facts.tags, CONSUMER: facts.lambda_consumers or facts.stopped_consumers}
    unread = tuple(prefix for prefix, some in read.items() if facts.exists and not some)
    of = ", ".join(["attributes", *(f"{each.strip()}s" for each in read if each not in unread)])
    for each in baselines[:2]:
        then = {name: it for name, it in each.attributes.items() if not name.startswith(unread)}
        found = first_of(differences(then, describe_configuration(facts)), _MOST_LINES)
        changed = f"changed since, of its {of}:" if found else f"nothing changed since of its {of}"
        yield f"a scan found it well at {moment(each.at)}; {changed}"
        yield from found
        if found or now - each.at > CHANGED_LATELY:
            return


def changed_last_lines(last_change: QueueChange | str | None) -> tuple[str, ...]:
    if last_change is None:
        return ("nobody in the 90 days that CloudTrail keeps; it may lag by minutes",)
    if isinstance(last_change, str):
        return (f"not known: {plain(last_change, 300)}",)
    before = (f"before: {change_line(e)} by {value(e.principal_arn)}" for e in last_change.earlier)
    return (value(last_change.principal_arn), change_line(last_change), *before)


def change_line(change: QueueChange) -> str:
    """What was called and when, and the attributes that it set."""
    names = ", ".join(first_of((value(each, 64) for each in change.attributes), _MOST_NAMED))
    called = f"{value(change.event_name, 64)} at {moment(change.at)}"
    return called + (f": {names}" if names else "")


def _read_moment(text: object) -> str:
    try:
        return moment(datetime.fromisoformat(str(text)))
    except (ValueError, OverflowError):
        return value(text, 40)


def timeline_lines(
    points: Sequence[TimelinePoint], most: int = _MOST_OF_A_POINT
) -> list[tuple[str, str]]:
    """A case's time line: when (UTC) and how long after the first, and what happened then.

    That is cut after `most` characters.
    """
    after = [f"+{span(each.at - points[0].at)}" for each in points]
    width = max(map(len, after))
    words = (f"{each.words}: {each.says}" if each.says else each.words for each in points)
    return [
        (f"{each.at.astimezone(UTC):%Y-%m-%d %H:%M:%S}  {late:>{width}}", plain(said, most))
        for each, late, said in zip(points, after, words, strict=True)
    ]


def draw_bars(spans: Sequence[tuple[str, float]]) -> list[tuple[str, str]]:
    """How long consumers need, by what says so, and what they have: a bar beside each."""
    width = min(64, max((len(what) for what, _ in spans), default=0))
    longest = max((seconds for _, seconds in spans), default=0)
    return [
        (f"{plain(what, 64):{width}}", f"{it:>7,g} s {'=' * round(_MOST_BAR * it / longest)}")
        for what, it in spans
    ]
