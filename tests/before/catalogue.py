"""What the catalogue says: every symptom, what it matches, and its answer to every example."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mendq.catalogue import CATALOGUE, examples, match
from mendq.catalogue.symptom import Fixed, NearMiss, NotMatched, Refused, Symptom
from mendq.model.facts import Facts
from mendq.model.failed_call import CODES, FailedCall, canonical
from mendq.model.limits import Limits
from mendq.model.names import DATA_EVENT_NAMES
from mendq.model.steps import STEPS
from tests.before.answers import answer_of
from tests.before.stored import NOT_HERE
from tests.real_records import SQS_ERRORS, sqs_errors

_QUEUES = {"standard": examples.STANDARD_ARN, "fifo": examples.QUEUE_ARN}


def record() -> Any:
    """The catalogue as its parts."""
    return {
        "order": [each.name for each in CATALOGUE],
        "symptoms": {each.name: _symptom(each) for each in CATALOGUE},
        "steps": {each.attribute: _step(each) for each in STEPS},
        "matched": {each.canonical: _matched(each.canonical) for each in CODES},
        "spellings": {
            spelled: canonical(spelled)
            for each in CODES
            for spelled in _spellings(each.canonical, each.other)
        },
        "real_errors": _real_errors(),
    }


def _spellings(code: str, other: str | None) -> list[str]:
    names = [code, *([other] if other else [])]
    forms = ("{}", "AWS.SimpleQueueService.{}", "{}Exception", "com.amazonaws.sqs#{}")
    return [form.format(name) for name in names for form in forms]


def _symptom(entry: Symptom) -> dict[str, Any]:
    detection = entry.detection
    return {
        "sentence": entry.sentence,
        "plan_in_words": entry.plan_in_words,
        "aws_page": entry.aws_page,
        "runbook": entry.runbook,
        "autonomy": entry.autonomy,
        "ships_as": entry.ships_as,
        "needs": sorted(need.name.lower() for need in entry.needs),
        "every_need": sorted(need.name.lower() for need in entry.every_need),
        "evidence": entry.evidence,
        "steps": [each.attribute for each in entry.steps],
        "shows": sorted(entry.shows),
        "gives_way_to": entry.gives_way_to,
        "outlives_a_change": entry.outlives_the_timeout,
        "about_callers": isinstance(entry, Fixed) and entry.notifies_callers,
        "seen_as": sorted(
            f"{each.error_code} {_events(each.event_names)}" for each in entry.seen_as
        ),
        "many_at_once": [entry.mass.words, entry.mass.command(examples.STANDARD_ARN)],
        "detection": None
        if detection is None
        else {
            "needs": sorted(need.name.lower() for need in detection.needs),
            "of_configuration": detection.of_configuration,
            "measured_last": detection.measured_last,
        },
        "caught": {each.title: _answer(entry, each.call, each.facts) for each in entry.caught},
        "detected": {each.title: _answer(entry, None, each.facts) for each in entry.detected},
        "near_misses": {each.title: _near_miss(entry, each) for each in entry.near_misses},
    }


def _events(names: frozenset[str] | None) -> str:
    return "any call" if names is None else ", ".join(sorted(names))


def _answer(entry: Symptom, call: FailedCall | None, facts: Facts | None) -> dict[str, Any]:
    """What the call matches, what is detected in the facts, and what is planned by them."""
    answer: dict[str, Any] = {}
    if call is not None:
        matched = match(call)
        answer["matches"] = matched.name if matched else None
        answer["counts_as_evidence"] = entry.speaks(call)
    if facts is None:
        return answer
    if entry.detection is not None:
        found = entry.detection.detect(facts)
        answer["suspected"] = entry.detection.suspects(facts)
        answer["found"] = found and [found.because, found.about, found.seconds_left]
        facts = replace(facts, found=found.because) if found and call is None else facts
    if entry.plan is not None:
        answer["answer"] = answer_of(entry.plan(facts, Limits()))
    return answer


def _near_miss(entry: Symptom, example: NearMiss) -> dict[str, Any]:
    if isinstance(example, NotMatched):
        return {"code": "no_match", **_answer(entry, example.call, None)}
    code = example.code if isinstance(example, Refused) else "not_found"
    return {"code": code, **_answer(entry, None, example.facts)}


def _step(kind: Any) -> dict[str, Any]:
    bounds = {name: getattr(kind, name, None) for name in ("minimum", "maximum", "wanted")}
    names = ("iam_action", "owner", "absent_means", "stays", "leaves_a_value", "most_a_day")
    return {**{name: getattr(kind, name) for name in names}, **bounds}


def _matched(code: str) -> dict[str, str]:
    """The symptoms that a code points to, and by which calls on which type of queue."""
    calls = [(queue, event) for queue in _QUEUES for event in sorted(DATA_EVENT_NAMES)]
    found: dict[str, list[str]] = {}
    for queue, event in calls:
        matched = match(examples.failed_call(event, code, queue_arn=_QUEUES[queue]))
        found.setdefault(matched.name if matched else "nothing", []).append(f"{queue} {event}")
    return {
        name: "every call" if len(by) == len(calls) else ", ".join(by) for name, by in found.items()
    }


def _real_errors() -> Any:
    """What the errors of the real SQS point to, where they are here."""
    if not SQS_ERRORS.exists():
        return NOT_HERE
    found = {}
    for each in sqs_errors():
        code, message = each["query"] or each["code"], each["message"] or ""
        for event in ("DeleteMessage", "ReceiveMessage", "SendMessage"):
            call = examples.failed_call(event, code, message, examples.STANDARD_ARN)
            matched = match(call)
            found[f"{event} {code}: {message}"] = matched.name if matched else None
    return found
