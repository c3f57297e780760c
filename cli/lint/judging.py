"""Holds a template against the catalogue: the sweep's own checks, on what is declared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from cli.lint import senders
from cli.lint.attributes import Attributes, Unknown
from cli.lint.cures import cure_of
from cli.lint.declared import REDRIVE, Declared, Queue, declared
from cli.lint.findings import Finding, Linted, NotJudged, Severity
from cli.lint.node import Node, NotATemplate
from cli.lint.short_lease import LEASE, lease_of
from cli.lint.stand_ins import Environment
from cli.lint.template import Template
from cli.lint.values import NotKnown
from cli.lint.work import SAYING_IT, Work
from functions.catalogue import CATALOGUE
from functions.catalogue.symptom import Symptom
from functions.healing.facts import Need
from functions.healing.tags import TagUnreadable

OF_CONFIGURATION = tuple(each for each in CATALOGUE if each.is_of_configuration)
_NESTED_STACK = "AWS::CloudFormation::Stack"


def lint(root: Node, file: str, environment: Environment, work: Work | None = None) -> Linted:
    """Raises NotATemplate."""
    try:
        return _linted(root, file, environment, work or Work())
    except RecursionError as error:
        raise NotATemplate("nested too deep to be worked out") from error


def _linted(root: Node, file: str, environment: Environment, work: Work) -> Linted:
    template = Template(root)
    found = declared(template, environment, work)
    findings, ignored, not_judged = list[Finding](), list[Finding](), list[NotJudged]()
    for said in _said_of(found):
        work.take(SAYING_IT)
        if isinstance(said, NotJudged):
            not_judged.append(said)
        else:
            (ignored if _is_ignored(said, template) else findings).append(said)
    defaults = sorted(found.values.defaults.items())
    return Linted(file, len(found.queues), findings, ignored, not_judged, defaults)


def _is_ignored(finding: Finding, template: Template) -> bool:
    return finding.symptom.name in template.resources[finding.resource].ignored


def _said_of(found: Declared) -> Iterator[Finding | NotJudged]:
    for queue in found.queues.values():
        yield from _judged(queue, found)
    yield from senders.judged(found)
    yield from _not_looked_at(found)


def _judged(queue: Queue, found: Declared) -> Iterator[Finding | NotJudged]:
    """Errors first."""
    found.begin(queue)
    findings, unknown = list[Finding](), defaultdict[tuple[str, str], list[str]](list)
    for symptom in OF_CONFIGURATION:
        try:
            findings += _found(symptom, queue, found)
        except Unknown as error:
            unknown[error.attribute, error.because].append(symptom.name)
    if elsewhere := _letters_go_elsewhere(queue, found):
        named = unknown[REDRIVE, elsewhere]
        named += [each for each in _ASKING_FOR_LETTERS if each not in named]
    try:
        findings += _short_lease(queue, found)
    except (Unknown, TagUnreadable) as error:
        unknown["VisibilityTimeout", str(error)].append(LEASE.name)
    yield from sorted(findings, key=lambda each: each.severity is not Severity.ERROR)
    for (attribute, why), symptoms in unknown.items():
        yield NotJudged(found.place(queue, [attribute]), found.made.shown(why), tuple(symptoms))
    yield from _times_not_known(queue, found)


def _found(symptom: Symptom, queue: Queue, found: Declared) -> Iterator[Finding]:
    """None or one; raises Unknown where it turns on what is not known."""
    facts = found.facts_of(queue)
    detected = symptom.detection.detect(facts) if symptom.detection else None
    if detected is not None:
        assert isinstance(facts.attributes, Attributes)  # noqa: S101 - made so
        yield Finding(
            queue.resource.logical_id,
            symptom,
            Severity.of(symptom),
            found.made.shown(detected.because),
            found.place(queue, facts.attributes.read),
            cure_of(symptom, queue, found),
        )


def _letters_go_elsewhere(queue: Queue, found: Declared) -> str | None:
    """Why nobody knows the queue that takes its letters, where there is to be one."""
    target = queue.target
    if isinstance(target, NotKnown):
        return target.because
    if target is None or target in found.queues:
        return None
    return f"the template does not declare {target}"


def _short_lease(queue: Queue, found: Declared) -> Iterator[Finding]:
    """None or one; raises Unknown or TagUnreadable."""
    lease = lease_of(found.facts_of(queue), queue.consumers)
    if lease is not None:
        name, because = queue.resource.logical_id, found.made.shown(lease.because)
        place = found.place(queue, ["VisibilityTimeout"])
        yield Finding(name, LEASE, lease.severity, because, place, lease.cure)


def _times_not_known(queue: Queue, found: Declared) -> Iterator[NotJudged]:
    for each in queue.consumers:
        if isinstance(each.times, NotKnown):
            because = f"how long its function may run: {each.times.because}"
            place = found.place_of(each.mapping)
            yield NotJudged(place, found.made.shown(because), (LEASE.name,))


def _not_looked_at(found: Declared) -> Iterator[NotJudged]:
    template = found.template
    for macro in template.transforms:
        place = template.place("Transform")
        yield NotJudged(place, f"what {macro} makes of the template is not known here")
    for name in template.resources:
        if name.startswith("Fn::"):
            yield NotJudged(template.place("Resources", name), "it is written out when deployed")
    for nested in template.of_type(_NESTED_STACK):
        place = found.place_of(nested)
        yield NotJudged(place, "a nested stack: its template is another")
    for name, astray in found.consumers.astray.items():
        place = template.place("Resources", name)
        yield NotJudged(place, found.made.shown(astray.because), _ASKING_FOR_READERS)
    for each in template.resources.values():
        for name in sorted(each.ignored - _LOOKED_FOR):
            place = found.place_of(each, "Metadata", "mendq", "ignore")
            yield NotJudged(place, f"{name} is no symptom that is looked for")


def _asking_for(need: Need) -> tuple[str, ...]:
    return tuple(each.name for each in OF_CONFIGURATION if need in each.every_need)


_LOOKED_FOR = frozenset({LEASE.name, *(each.name for each in OF_CONFIGURATION)})
_ASKING_FOR_READERS = (LEASE.name, *_asking_for(Need.LAMBDA_CONSUMERS))
_ASKING_FOR_LETTERS = _asking_for(Need.DEAD_LETTER_QUEUE)
