"""Check a template for the catalogue's symptoms, with the same checks that the hourly scan uses.

The scan checks queues that exist. This module checks queues as a template declares them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from mendq.catalogue import CATALOGUE
from mendq.catalogue.symptom import Symptom
from mendq.catalogue.visibility import needed_timeout
from mendq.catalogue.visibility.visibility_timeout_too_short import (
    VISIBILITY_TIMEOUT_TOO_SHORT as TOO_SHORT,
)
from mendq.lint.queues import MAPPING, REDRIVE, DeclaredQueues, Queue
from mendq.lint.remedies import find_remedy
from mendq.lint.template import Place, Template, to_list
from mendq.lint.values import QUEUE, DeployTarget, NotKnown
from mendq.model.facts import Need
from mendq.model.limits import Limits
from mendq.model.queue import arn_of
from mendq.model.steps import SetVisibilityTimeout
from mendq.model.tags import TagUnreadable

# Symptoms that a queue's configuration alone shows. Those that need a function's reserved
# concurrency are left out: it is no property of a queue and seldom in the same template.
CONFIGURATION_SYMPTOMS = tuple(
    symptom
    for symptom in CATALOGUE
    if symptom.is_of_configuration and Need.RESERVED_CONCURRENCY not in symptom.every_need
)
CHECKED_SYMPTOMS = (*CONFIGURATION_SYMPTOMS, TOO_SHORT)
# Steps of work (see `WorkBudget`) for checking one queue and for reporting one result.
_STEPS_PER_QUEUE = 500
_STEPS_PER_RESULT = 500


class LintSeverity(StrEnum):
    """ERROR if Mendq has a plan for the symptom, WARNING if it only reports the symptom.

    Exception: a visibility timeout that is only below AWS's advice is a WARNING.
    """

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True)
class LintFinding:
    """A symptom that a resource would show once it is deployed."""

    # Logical ID of the resource.
    resource: str
    symptom: str
    severity: LintSeverity
    # Keys from the top of the template to the value at fault.
    path: str
    # Line of that value, from 1. None if the decoder does not know it.
    line: int | None
    because: str
    # Lines of the template that fix it. Empty if lint knows none.
    remedy: tuple[str, ...]
    runbook: str
    aws_page: str
    # Path of the construct in the CDK app that made the resource. Empty without a CDK app.
    construct: str


@dataclass(frozen=True)
class UncheckedPlace:
    """A place of the template that could not be checked."""

    path: str
    line: int | None
    because: str
    # Symptoms that could not be checked there. Empty means all.
    symptoms: tuple[str, ...] = ()


@dataclass(frozen=True)
class LintResult:
    """Result of the check of one template."""

    file: str
    # Number of queues that the template declares.
    queues: int
    findings: Sequence[LintFinding]
    # Findings that the template's metadata or the option --ignore tells lint to ignore.
    ignored: Sequence[LintFinding]
    not_judged: Sequence[UncheckedPlace]
    # Parameters whose default was used: `parameter` is the name, `value` the default.
    defaults: Sequence[dict[str, str]]


def list_severities(symptom: Symptom) -> tuple[LintSeverity, ...]:
    """Return the severities that findings of a symptom can have."""
    if symptom is TOO_SHORT:
        return LintSeverity.ERROR, LintSeverity.WARNING
    return (LintSeverity.WARNING if symptom.plan is None else LintSeverity.ERROR,)


def lint(
    template: Template, file: str, target: DeployTarget, ignoring: Collection[str] = ()
) -> LintResult:
    """Check all queues of a template.

    Args:
        template: The template.
        file: Its name in the result.
        target: Account and region of the deployment, unless the template itself contains them.
        ignoring: Names of symptoms whose findings count as ignored.

    Raises:
        NotATemplate: The check takes more work than the template's budget has left.
    """
    declared = DeclaredQueues(template, replace(target, **template.deploy_target))
    findings = list[LintFinding]()
    ignored = list[LintFinding]()
    not_judged = list[UncheckedPlace]()
    for result in _check_all(declared):
        template.work.take(_STEPS_PER_RESULT)
        if isinstance(result, UncheckedPlace):
            not_judged.append(result)
        elif result.symptom in {*ignoring, *template.resources[result.resource].ignored_symptoms}:
            ignored.append(result)
        else:
            findings.append(result)
    defaults = [
        {"parameter": name, "value": default}
        for name, default in sorted(declared.names.defaults.items())
    ]
    return LintResult(file, len(declared.queues), findings, ignored, not_judged, defaults)


def _check_all(declared: DeclaredQueues) -> Iterator[LintFinding | UncheckedPlace]:
    """Yield the results of each queue, then the parts of the template that are not checked."""
    for queue in declared.queues.values():
        yield from _check_queue(queue, declared)
    yield from _list_unchecked_parts(declared)


def _check_queue(queue: Queue, declared: DeclaredQueues) -> Iterator[LintFinding | UncheckedPlace]:
    """Yield the findings about a queue, errors first, and then what could not be checked."""
    # Each check parses the queue's texts again and searches them for each source.
    texts = (text for text in dict.values(queue.attributes) if isinstance(text, str))
    characters = sum(map(len, texts))
    source_factor = 1 + len(queue.dlq_sources or ()) // 16
    declared.template.work.take(_STEPS_PER_QUEUE + characters * source_factor)
    findings = list[LintFinding]()
    # Symptoms that could not be checked, by the unknown attribute and the reason.
    unchecked = defaultdict[tuple[str, str], list[str]](list)
    for symptom in CHECKED_SYMPTOMS:
        try:
            check = _check_timeout if symptom is TOO_SHORT else _check_symptom
            finding = check(symptom, queue, declared)
        except (NotKnown, TagUnreadable) as error:
            unchecked[getattr(error, "attribute", ""), str(error)].append(symptom.name)
        else:
            if finding is not None:
                findings.append(finding)
    if why_dlq_unknown := _explain_unknown_dlq(queue, declared):
        names = unchecked[REDRIVE, why_dlq_unknown]
        for name in _names_of_symptoms_that_need(Need.DLQ, Need.DLQ_SOURCES):
            if name not in names:
                names.append(name)
    yield from sorted(findings, key=lambda finding: finding.severity is not LintSeverity.ERROR)
    for (attribute, why), symptoms in unchecked.items():
        place = declared.find_place(queue, [attribute])
        yield _make_unchecked(declared, place, why, *symptoms)
    for consumer in queue.lambda_consumers:
        if consumer.unknown:
            why = f"how long its function may run: {consumer.unknown}"
            place = declared.find_place_in(consumer.mapping)
            yield _make_unchecked(declared, place, why, TOO_SHORT.name)


def _make_unchecked(
    declared: DeclaredQueues, place: Place, why: str, *symptoms: str
) -> UncheckedPlace:
    return UncheckedPlace(*place, declared.names.use_logical_ids(why), symptoms)


def _make_finding(
    declared: DeclaredQueues,
    symptom: Symptom,
    queue: Queue,
    attributes: Sequence[str],
    because: str,
) -> LintFinding:
    """Return a finding. Its place is the first of `attributes` that the template sets, or else the
    queue's resource.
    """
    place = declared.find_place(queue, attributes)
    severity, *_ = list_severities(symptom)
    return LintFinding(
        resource=queue.resource.logical_id,
        symptom=symptom.name,
        severity=severity,
        path=place.path,
        line=place.line,
        because=declared.names.use_logical_ids(because),
        remedy=find_remedy(symptom, queue, declared),
        runbook=symptom.runbook,
        aws_page=symptom.aws_page,
        construct=queue.resource.construct,
    )


def _check_symptom(symptom: Symptom, queue: Queue, declared: DeclaredQueues) -> LintFinding | None:
    """Return a finding if the queue shows the symptom, otherwise None.

    Raises NotKnown if the answer depends on a value that is not known.
    """
    queue.attributes.names_read.clear()
    detected = symptom.detection.detect(queue) if symptom.detection else None
    if detected is None:
        return None
    names_read = [*queue.attributes.names_read]
    return _make_finding(declared, symptom, queue, names_read, detected.because)


def _explain_unknown_dlq(queue: Queue, declared: DeclaredQueues) -> str | None:
    """Return why the queue's DLQ is not known. None if it is known or the queue has none."""
    try:
        dlq_arn = arn_of(queue.dlq_arn)
    except NotKnown as error:
        return error.because
    is_known = dlq_arn is None or dlq_arn in declared.queues
    return None if is_known else f"the template does not declare {dlq_arn}"


def _check_timeout(symptom: Symptom, queue: Queue, declared: DeclaredQueues) -> LintFinding | None:
    """Return a finding if the visibility timeout is shorter than consumers need or AWS advises.

    It is an error if a consumer may work longer than the timeout, and a warning if the timeout is
    only below AWS's advice. The scan reports the symptom later, once messages are harmed. The
    remedy is the value that heal would write, up to the default ceiling. Raises NotKnown or
    TagUnreadable.
    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
    """
    known_consumers = tuple(consumer for consumer in queue.lambda_consumers if not consumer.unknown)
    facts = replace(queue, lambda_consumers=known_consumers)
    needs = needed_timeout.list_named_needs(facts)
    if not needs:
        return None
    seconds = facts.visibility_seconds
    unmet = needed_timeout.list_unmet_needs(facts, needs)
    below_advice = [need for need in needs if need.recommended_seconds > seconds]
    too_short_for = unmet or below_advice
    if not too_short_for:
        return None
    ceiling = needed_timeout.read_ceiling_seconds(facts, Limits())
    longest = max(too_short_for, key=lambda need: need.least_seconds)
    ends = "ends before its consumers are done" if unmet else "leaves Lambda no room for retries"
    because = f"the visibility timeout of {seconds} s {ends}: {longest.because}"
    because += needed_timeout.advice_beyond(needs, seconds)
    goal = needed_timeout.goal_seconds(facts, needs, ceiling)
    finding = _make_finding(declared, symptom, queue, [SetVisibilityTimeout.attribute], because)
    return replace(
        finding,
        remedy=_timeout_remedy(declared, seconds, goal, ceiling),
        severity=LintSeverity.ERROR if unmet else LintSeverity.WARNING,
    )


def _timeout_remedy(
    declared: DeclaredQueues, seconds: int, goal: int, ceiling: int
) -> tuple[str, ...]:
    """Return the line that sets the visibility timeout, or a comment if no allowed value is enough.

    Args:
        declared: The template's queues.
        seconds: The declared timeout.
        goal: The timeout that heal would write.
        ceiling: The longest timeout that heal may write.
    """
    if goal > (most := SetVisibilityTimeout.maximum):
        why = f"no visibility timeout is longer than {most} s"
        return (f"# {why}: give the function a shorter timeout",)
    if goal <= seconds:
        tag = needed_timeout.MAX_VISIBILITY_TAG
        return (f"# over the ceiling of {ceiling} s, which the tag {tag} raises",)
    return declared.template.render(SetVisibilityTimeout.attribute, goal)


def _list_unchecked_parts(declared: DeclaredQueues) -> Iterator[UncheckedPlace]:
    """Yield the parts of the template that lint cannot check.

    These are macros, `Fn::` functions in place of resources, nested stacks, queues and event source
    mappings that cannot be resolved, and unknown names in lists of symptoms to ignore.
    """
    template = declared.template
    for transform in to_list(template.root.get("Transform")):
        macro = transform if isinstance(transform, str) else "a macro"
        place = template.find_place("Transform")
        yield UncheckedPlace(*place, f"what {macro} makes of the template is not known here")
    checked_names = {symptom.name for symptom in CHECKED_SYMPTOMS}
    for name, resource in template.resources.items():
        if name.startswith("Fn::"):
            place = declared.find_place_in(resource)
            yield UncheckedPlace(*place, "it is written out when deployed")
        elif resource.type == "AWS::CloudFormation::Stack":
            place = declared.find_place_in(resource)
            yield UncheckedPlace(*place, "a nested stack: its template is another")
        elif resource.type in (MAPPING, QUEUE) and name in declared.unassigned:
            symptoms: tuple[str, ...] = ()
            if resource.type == MAPPING:
                needing = _names_of_symptoms_that_need(Need.LAMBDA_CONSUMERS)
                symptoms = (TOO_SHORT.name, *needing)
            place = declared.find_place_in(resource)
            why = declared.unassigned[name].because
            yield _make_unchecked(declared, place, why, *symptoms)
        for ignored in sorted(resource.ignored_symptoms - checked_names):
            place = declared.find_place_in(resource, "Metadata", "mendq", "ignore")
            yield UncheckedPlace(*place, f"{ignored} is no symptom that is looked for")


def _names_of_symptoms_that_need(*needs: Need) -> tuple[str, ...]:
    """Return the configuration symptoms whose check reads one of these facts."""
    return tuple(
        symptom.name
        for symptom in CONFIGURATION_SYMPTOMS
        if not symptom.every_need.isdisjoint(needs)
    )
