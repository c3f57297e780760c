"""Holds a template against the catalogue: the scan's own checks, on what is declared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain

from mendq.catalogue import CATALOGUE
from mendq.catalogue.symptom import Symptom
from mendq.catalogue.visibility import needed_timeout
from mendq.catalogue.visibility.visibility_timeout_too_short import (
    VISIBILITY_TIMEOUT_TOO_SHORT as TOO_SHORT,
)
from mendq.lint.queues import MAPPING, REDRIVE, DeclaredQueues, Queue
from mendq.lint.remedies import remedy_of
from mendq.lint.template import Place, Template, to_list
from mendq.lint.values import QUEUE, DeployTarget, NotKnown
from mendq.model.facts import Need
from mendq.model.limits import Limits, TagUnreadable
from mendq.model.queue import arn_of
from mendq.model.steps import SetVisibilityTimeout

# What a function reserves is no queue's, and seldom in the same template.
CONFIGURATION_SYMPTOMS = tuple(
    each
    for each in CATALOGUE
    if each.is_of_configuration and Need.RESERVED_CONCURRENCY not in each.every_need
)
CHECKED_SYMPTOMS = (*CONFIGURATION_SYMPTOMS, TOO_SHORT)
# Steps of work.
_A_QUEUE, _SAYING_IT = 500, 500


class LintSeverity(StrEnum):
    """An error is what Mendq would act on or page about, a warning what it would report."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True)
class LintFinding:
    """A symptom that a resource would show; `remedy` are lines of the template that change it.

    `construct` is where a CDK app makes the resource, empty where no app does.
    """

    resource: str
    symptom: str
    severity: LintSeverity
    path: str
    line: int | None
    because: str
    remedy: tuple[str, ...]
    runbook: str
    aws_page: str
    construct: str


@dataclass(frozen=True)
class UncheckedPlace:
    """A place of which nobody can say whether it shows one of `symptoms`; empty: any."""

    path: str
    line: int | None
    because: str
    symptoms: tuple[str, ...] = ()


@dataclass(frozen=True)
class LintResult:
    """One template, judged; `defaults` are the parameters whose default was taken."""

    file: str
    queues: int
    findings: Sequence[LintFinding]
    ignored: Sequence[LintFinding]
    not_judged: Sequence[UncheckedPlace]
    defaults: Sequence[dict[str, str]]


Said = LintFinding | UncheckedPlace


def list_severities(symptom: Symptom) -> tuple[LintSeverity, ...]:
    """What a finding of a symptom may be."""
    if symptom is TOO_SHORT:
        return LintSeverity.ERROR, LintSeverity.WARNING
    return (LintSeverity.WARNING if symptom.plan is None else LintSeverity.ERROR,)


def lint(
    template: Template, file: str, environment: DeployTarget, ignoring: Collection[str] = ()
) -> LintResult:
    """Raises NotATemplate."""
    findings, ignored, not_judged = list[LintFinding](), list[LintFinding](), list[UncheckedPlace]()
    found = DeclaredQueues(template, replace(environment, **template.where))
    queues = (_judged(each, found) for each in found.queues.values())
    for said in chain(chain.from_iterable(queues), _not_looked_at(found)):
        template.work.take(_SAYING_IT)
        if isinstance(said, UncheckedPlace):
            not_judged.append(said)
        else:
            is_ignored = said.symptom in {*ignoring, *template.resources[said.resource].ignored}
            (ignored if is_ignored else findings).append(said)
    taken = sorted(found.names.defaults.items())
    defaults = [{"parameter": name, "value": each} for name, each in taken]
    return LintResult(file, len(found.queues), findings, ignored, not_judged, defaults)


def _judged(queue: Queue, found: DeclaredQueues) -> Iterator[Said]:
    """Errors first."""
    # Each check reads the queue's texts anew, and looks each source up in them.
    characters = sum(len(each) for each in dict.values(queue.attributes) if isinstance(each, str))
    found.template.work.take(_A_QUEUE + characters * (1 + len(queue.dlq_sources or ()) // 16))
    findings, unknown = list[LintFinding](), defaultdict[tuple[str, str], list[str]](list)
    for symptom in CHECKED_SYMPTOMS:
        try:
            check = _too_short if symptom is TOO_SHORT else _detected
            findings += check(symptom, queue, found)
        except (NotKnown, TagUnreadable) as error:
            unknown[getattr(error, "attribute", ""), str(error)].append(symptom.name)
    if elsewhere := _dlq_elsewhere(queue, found):
        named = unknown[REDRIVE, elsewhere]
        named += [e for e in _asking_for(Need.DLQ, Need.DLQ_SOURCES) if e not in named]
    yield from sorted(findings, key=lambda each: each.severity is not LintSeverity.ERROR)
    for (attribute, why), symptoms in unknown.items():
        yield _not_judged(found, found.place(queue, [attribute]), why, *symptoms)
    for each in queue.lambda_consumers:
        if each.unknown:
            why = f"how long its function may run: {each.unknown}"
            yield _not_judged(found, found.place_of(each.mapping), why, TOO_SHORT.name)


def _not_judged(found: DeclaredQueues, place: Place, why: str, *symptoms: str) -> UncheckedPlace:
    return UncheckedPlace(*place, found.names.shown(why), symptoms)


def _finding(
    found: DeclaredQueues, symptom: Symptom, queue: Queue, attributes: Sequence[str], because: str
) -> LintFinding:
    of, (severity, *_) = queue.resource, list_severities(symptom)
    place, said = found.place(queue, attributes), found.names.shown(because)
    what = (*place, said, remedy_of(symptom, queue, found), symptom.runbook, symptom.aws_page)
    return LintFinding(of.logical_id, symptom.name, severity, *what, of.construct)


def _detected(symptom: Symptom, queue: Queue, found: DeclaredQueues) -> Iterator[LintFinding]:
    """None or one; raises NotKnown where it turns on what is not known."""
    queue.attributes.read.clear()
    detected = symptom.detection.detect(queue) if symptom.detection else None
    if detected is not None:
        yield _finding(found, symptom, queue, [*queue.attributes.read], detected.because)


def _dlq_elsewhere(queue: Queue, found: DeclaredQueues) -> str | None:
    """Why nobody knows its DLQ, where there is to be one."""
    try:
        target = arn_of(queue.dlq_arn)
    except NotKnown as error:
        return error.because
    is_known = target is None or target in found.queues
    return None if is_known else f"the template does not declare {target}"


def _too_short(symptom: Symptom, queue: Queue, found: DeclaredQueues) -> Iterator[LintFinding]:
    """A visibility timeout that consumers outlast, or below AWS's advice; a scan waits longer.

    An error where work outlasts it. What it is to be is what heal would write, within the ceiling
    that ships. Raises NotKnown or TagUnreadable.
    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
    """
    known = tuple(each for each in queue.lambda_consumers if not each.unknown)
    facts = replace(queue, lambda_consumers=known)
    needs = needed_timeout.list_named_needs(facts)
    if not needs:
        return
    seconds, unmet = facts.visibility_seconds, needed_timeout.list_unmet_needs(facts, needs)
    short = unmet or [each for each in needs if each.recommended_seconds > seconds]
    if not short:
        return
    ceiling = needed_timeout.read_ceiling_seconds(facts, Limits())
    longest = max(short, key=lambda each: each.least_seconds)
    ends = "ends before its consumers are done" if unmet else "leaves Lambda no room for retries"
    because = f"the visibility timeout of {seconds} s {ends}: {longest.because}"
    because += needed_timeout.advice_beyond(needs, seconds)
    wanted = needed_timeout.goal_seconds(facts, needs, ceiling)
    severity = LintSeverity.ERROR if unmet else LintSeverity.WARNING
    finding = _finding(found, symptom, queue, [SetVisibilityTimeout.attribute], because)
    remedy = _remedy(found, seconds, wanted, ceiling)
    yield replace(finding, remedy=remedy, severity=severity)


def _remedy(found: DeclaredQueues, seconds: int, wanted: int, ceiling: int) -> tuple[str, ...]:
    if wanted > (most := SetVisibilityTimeout.maximum):
        why = f"no visibility timeout is longer than {most} s"
        return (f"# {why}: give the function a shorter timeout",)
    if wanted <= seconds:
        tag = needed_timeout.MAX_VISIBILITY_TAG
        return (f"# over the ceiling of {ceiling} s, which the tag {tag} raises",)
    return found.template.written(SetVisibilityTimeout.attribute, wanted)


def _not_looked_at(found: DeclaredQueues) -> Iterator[UncheckedPlace]:
    template = found.template
    for each in to_list(template.root.get("Transform")):
        macro = each if isinstance(each, str) else "a macro"
        place = template.place("Transform")
        yield UncheckedPlace(*place, f"what {macro} makes of the template is not known here")
    for name, resource in template.resources.items():
        if name.startswith("Fn::"):
            yield UncheckedPlace(*found.place_of(resource), "it is written out when deployed")
        elif resource.type == "AWS::CloudFormation::Stack":
            yield UncheckedPlace(
                *found.place_of(resource), "a nested stack: its template is another"
            )
        elif resource.type in (MAPPING, QUEUE) and name in found.astray:
            asking = (TOO_SHORT.name, *_asking_for(Need.LAMBDA_CONSUMERS))
            about = asking if resource.type == MAPPING else ()
            yield _not_judged(found, found.place_of(resource), found.astray[name].because, *about)
        for ignored in sorted(resource.ignored.difference(each.name for each in CHECKED_SYMPTOMS)):
            place = found.place_of(resource, "Metadata", "mendq", "ignore")
            yield UncheckedPlace(*place, f"{ignored} is no symptom that is looked for")


def _asking_for(*needs: Need) -> tuple[str, ...]:
    return tuple(e.name for e in CONFIGURATION_SYMPTOMS if not e.every_need.isdisjoint(needs))
