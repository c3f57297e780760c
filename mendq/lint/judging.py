"""Holds a template against the catalogue: the scan's own checks, on what is declared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from mendq.catalogue import CATALOGUE, _visibility
from mendq.catalogue._visibility import VisibilityNeed
from mendq.catalogue.dlq_type_mismatch import DLQ_TYPE_MISMATCH as ANOTHER_TYPE
from mendq.catalogue.symptom import Symptom
from mendq.catalogue.visibility_timeout_too_short import VISIBILITY_TIMEOUT_TOO_SHORT as TOO_SHORT
from mendq.lint.queues import MAPPING, REDRIVE, TARGET, Declared, Queue
from mendq.lint.remedies import remedy_of
from mendq.lint.template import NotATemplate, Place, Resource, Template, listed, under
from mendq.lint.values import Environment, NotKnown
from mendq.model.facts import Facts, Need
from mendq.model.limits import TagUnreadable
from mendq.model.queue import FIFO, Redrive, parsed
from mendq.model.steps import SetVisibilityTimeout
from mendq.notifications.change_lines import template_line

OF_CONFIGURATION = tuple(each for each in CATALOGUE if each.is_of_configuration)
_LOOKED_FOR = frozenset({TOO_SHORT.name, *(each.name for each in OF_CONFIGURATION)})
_SUBSCRIPTION, _RULE = "AWS::SNS::Subscription", "AWS::Events::Rule"
# Steps of work.
_A_QUEUE, _A_SENDER, _SAYING_IT = 500, 100, 500


class Severity(StrEnum):
    """An error is what Mendq would act on or page about, a warning what it would report."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True)
class Finding:
    """A symptom that a resource would show; `remedy` are lines of the template that change it."""

    resource: str
    symptom: str
    severity: Severity
    path: str
    line: int | None
    because: str
    remedy: tuple[str, ...]
    runbook: str
    aws_page: str


@dataclass(frozen=True)
class NotJudged:
    """A place of which nobody can say whether it shows one of `symptoms`; empty: any."""

    path: str
    line: int | None
    because: str
    symptoms: tuple[str, ...] = ()


@dataclass(frozen=True)
class Linted:
    """One template, judged; `defaults` are the parameters whose default was taken."""

    file: str
    queues: int
    findings: Sequence[Finding]
    ignored: Sequence[Finding]
    not_judged: Sequence[NotJudged]
    defaults: Sequence[dict[str, str]]


Said = Finding | NotJudged


def lint(template: Template, file: str, environment: Environment) -> Linted:
    """Raises NotATemplate."""
    try:
        found = Declared(template, environment)
        findings, ignored, not_judged = list[Finding](), list[Finding](), list[NotJudged]()
        for said in _said_of(found):
            template.work.take(_SAYING_IT)
            if isinstance(said, NotJudged):
                not_judged.append(said)
            elif said.symptom in template.resources[said.resource].ignored:
                ignored.append(said)
            else:
                findings.append(said)
    except RecursionError as error:
        raise NotATemplate("nested too deep to be worked out") from error
    defaults = [
        {"parameter": name, "value": value} for name, value in sorted(found.defaults.items())
    ]
    return Linted(file, len(found.queues), findings, ignored, not_judged, defaults)


def _said_of(found: Declared) -> Iterator[Said]:
    for queue in found.queues.values():
        yield from _judged(queue, found)
    for resource in found.template.of_type(_SUBSCRIPTION, _RULE):
        yield from _judged_sender(resource, found)
    yield from _not_looked_at(found)


def _judged(queue: Queue, found: Declared) -> Iterator[Said]:
    """Errors first."""
    # Each check reads the queue's texts anew, and looks each source up in them.
    characters = sum(len(each) for each in queue.attributes.said.values() if isinstance(each, str))
    found.template.work.take(_A_QUEUE + characters * (1 + len(queue.source_arns) // 16))
    findings, unknown = list[Finding](), defaultdict[tuple[str, str], list[str]](list)
    for symptom in (*OF_CONFIGURATION, TOO_SHORT):
        try:
            check = _too_short if symptom is TOO_SHORT else _detected
            findings += check(symptom, queue, found)
        except (NotKnown, TagUnreadable) as error:
            unknown[getattr(error, "attribute", ""), str(error)].append(symptom.name)
    if elsewhere := _dlq_elsewhere(queue, found):
        named = unknown[REDRIVE, elsewhere]
        named += [each for each in _asking_for(Need.DLQ) if each not in named]
    yield from sorted(findings, key=lambda each: each.severity is not Severity.ERROR)
    for (attribute, why), symptoms in unknown.items():
        yield _not_judged(found, found.place(queue, [attribute]), why, *symptoms)
    for each in queue.consumers:
        if each.unknown:
            why = f"how long its function may run: {each.unknown}"
            yield _not_judged(found, found.place_of(each.mapping), why, TOO_SHORT.name)


def _not_judged(found: Declared, place: Place, why: str, *symptoms: str) -> NotJudged:
    return NotJudged(*place, found.names.shown(why), symptoms)


def _finding(
    found: Declared, symptom: Symptom, resource: Resource, place: Place, because: str
) -> Finding:
    severity = Severity.WARNING if symptom.plan is None else Severity.ERROR
    own, pages = (resource.logical_id, symptom.name, severity), (symptom.runbook, symptom.aws_page)
    return Finding(*own, *place, found.names.shown(because), (), *pages)


def _detected(symptom: Symptom, queue: Queue, found: Declared) -> Iterator[Finding]:
    """None or one; raises NotKnown where it turns on what is not known."""
    queue.attributes.read.clear()
    detected = symptom.detection.detect(queue) if symptom.detection else None
    if detected is not None:
        place = found.place(queue, queue.attributes.read)
        finding = _finding(found, symptom, queue.resource, place, detected.because)
        yield replace(finding, remedy=remedy_of(symptom, queue, found))


def _dlq_elsewhere(queue: Queue, found: Declared) -> str | None:
    """Why nobody knows its DLQ, where there is to be one."""
    target = queue.target
    if isinstance(target, NotKnown):
        return target.because
    is_known = target is None or target in found.queues
    return None if is_known else f"the template does not declare {target}"


def _too_short(symptom: Symptom, queue: Queue, found: Declared) -> Iterator[Finding]:
    """A visibility timeout that consumers outlast, or below AWS's advice; a scan waits longer.

    An error where work outlasts it. Raises NotKnown or TagUnreadable.
    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
    """
    known = tuple(each.read_by for each in queue.consumers if not each.unknown)
    facts = replace(queue, lambda_consumers=known)
    needs = _visibility.named(facts)
    seconds = facts.visibility_seconds if needs else 0
    unmet = _visibility.unmet(facts, needs) if needs else []
    advised = [each for each in needs if (each.recommended_seconds or 0) > seconds]
    if not unmet and not advised:
        return
    longest = max(unmet or advised, key=_advised_seconds)
    ends = "ends before its consumers are done" if unmet else "leaves Lambda no room for retries"
    because = f"the visibility timeout of {seconds} s {ends}: {longest.because}"
    most, wanted = SetVisibilityTimeout.maximum, max(map(_advised_seconds, (*unmet, *advised)))
    remedy = template_line(SetVisibilityTimeout.attribute, str(wanted))
    if wanted > most:
        why = f"no visibility timeout is longer than {most} s"
        remedy = f"# {why}: give the function a shorter timeout"
    because += longest.recommended_beyond(seconds)
    finding = _finding(
        found, symptom, queue.resource, found.place(queue, ["VisibilityTimeout"]), because
    )
    severity = Severity.ERROR if unmet else Severity.WARNING
    yield replace(finding, remedy=(remedy,), severity=severity)


def _advised_seconds(need: VisibilityNeed) -> int:
    return need.recommended_seconds or need.seconds


def _judged_sender(resource: Resource, found: Declared) -> Iterator[Said]:
    """The DLQs of subscriptions and rules, which must be of the sender's kind.

    https://docs.aws.amazon.com/sns/latest/dg/sns-dead-letter-queues.html
    https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-dlq.html
    """
    for keys, written in _dlqs_of(resource):
        found.template.work.take(_A_SENDER)
        place = found.place_of(resource, "Properties", *keys)
        try:
            because = _wrong_kind(resource, written, found)
        except NotKnown as error:
            yield _not_judged(found, place, error.because, ANOTHER_TYPE.name)
        else:
            if because:
                yield _finding(found, ANOTHER_TYPE, resource, place, because)


def _dlqs_of(resource: Resource) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if resource.type == _SUBSCRIPTION and REDRIVE in resource.properties:
        yield (REDRIVE,), resource.properties[REDRIVE]
    targets = listed(resource.properties.get("Targets")) if resource.type == _RULE else []
    for number, each in enumerate(targets):
        config = under(each, "DeadLetterConfig") or {}
        if "Arn" in config:
            yield ("Targets", number, "DeadLetterConfig", "Arn"), config["Arn"]


def _wrong_kind(resource: Resource, written: Any, found: Declared) -> str | None:
    """The catalogue's check as of a queue of the kind that the sender takes; raises NotKnown."""
    named, ending = found.values.of(written), ""
    if resource.type == _SUBSCRIPTION:
        topic = found.values.text(resource.properties.get("TopicArn")) or ""
        ending = FIFO if topic.endswith(FIFO) else ""
        document = parsed(named) if isinstance(named, str) else named
        if not isinstance(document, dict):
            raise NotKnown("it is no JSON")
        named = document.get(TARGET)
    named = str(named or "")
    untyped = found.names.untyped.get(found.names.queues.get(named, ""))
    if untyped is not None:
        raise untyped
    standing = found.names.environment.arn("sqs", f"sender{ending}")
    facts = Facts(standing, {REDRIVE: Redrive(named, 1).text}, {})
    assert ANOTHER_TYPE.detection is not None  # noqa: S101 - it is found in no other way
    if ANOTHER_TYPE.detection.detect(facts) is None:
        return None
    takes, is_one = ("FIFO", "standard") if ending else ("standard", "FIFO")
    return f"it takes a {takes} queue for what it cannot deliver, and names {named}, a {is_one} one"


def _not_looked_at(found: Declared) -> Iterator[NotJudged]:
    template = found.template
    for each in listed(template.root.get("Transform")):
        macro = each if isinstance(each, str) else "a macro"
        place = template.place("Transform")
        yield NotJudged(*place, f"what {macro} makes of the template is not known here")
    for name in template.resources:
        if name.startswith("Fn::"):
            yield NotJudged(*template.place("Resources", name), "it is written out when deployed")
    for nested in template.of_type("AWS::CloudFormation::Stack"):
        yield NotJudged(*found.place_of(nested), "a nested stack: its template is another")
    for each in template.of_type(MAPPING):
        if each.logical_id in found.astray:
            why = found.astray[each.logical_id].because
            asking = (TOO_SHORT.name, *_asking_for(Need.LAMBDA_CONSUMERS))
            yield _not_judged(found, found.place_of(each), why, *asking)
    for each in template.resources.values():
        for name in sorted(each.ignored - _LOOKED_FOR):
            place = found.place_of(each, "Metadata", "mendq", "ignore")
            yield NotJudged(*place, f"{name} is no symptom that is looked for")


def _asking_for(need: Need) -> tuple[str, ...]:
    return tuple(each.name for each in OF_CONFIGURATION if need in each.every_need)
