"""Check the queues that a template declares for the symptoms of the catalogue.

Lint checks a queue's configuration with the same checks as the hourly scan, which checks existing
queues. It has its own check of the visibility timeout.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

from mendq.catalogue import CATALOGUE
from mendq.catalogue.access.producer_refused import PRODUCER_REFUSED, list_producer_admissions
from mendq.catalogue.access.producer_refused import detect as find_refused_producers
from mendq.catalogue.configuration.invalid_request import INVALID_REQUEST, REFUSED_IN_TEMPLATE
from mendq.catalogue.consumers.batch_failures_not_reported import BATCH_FAILURES_NOT_REPORTED
from mendq.catalogue.consumers.concurrency_too_small import (
    CONCURRENCY_TOO_SMALL,
    find_fault_in_template,
)
from mendq.catalogue.consumers.consumer_stopped import CONSUMER_STOPPED
from mendq.catalogue.consumers.consumer_throttled import CONSUMER_THROTTLED
from mendq.catalogue.consumers.mapping_wastes_receives import MAPPING_WASTES_RECEIVES
from mendq.catalogue.dlq.redrive_cycle import REDRIVE_CYCLE
from mendq.catalogue.messages.messages_expire import MESSAGES_EXPIRE
from mendq.catalogue.symptom import DetectedFault, EvidenceKind, Symptom
from mendq.catalogue.visibility import needed_timeout
from mendq.catalogue.visibility.visibility_timeout_too_short import (
    BELOW_ADVICE,
    BELOW_NEED,
    REFUSED_BY_LAMBDA,
)
from mendq.catalogue.visibility.visibility_timeout_too_short import (
    VISIBILITY_TIMEOUT_TOO_SHORT as TIMEOUT_TOO_SHORT,
)
from mendq.lint.ignores import InlineIgnore, StaleEntry, list_metadata_ignores, list_stale_ignores
from mendq.lint.producers import DeclaredProducer
from mendq.lint.queues import (
    EVENT_SOURCE_MAPPING_TYPE,
    DeclaredQueue,
    DeclaredQueues,
    QueueAttributes,
)
from mendq.lint.remedies import find_remedy, make_mapping_refusal_remedy, make_refusal_remedy
from mendq.lint.template import (
    LANGUAGE_EXTENSIONS_TRANSFORM,
    SAM_TRANSFORM,
    UNKNOWN_VALUE_FUNCTION,
    Template,
    TemplatePlace,
    TemplateResource,
    WorkBudget,
    to_list,
)
from mendq.lint.times import (
    find_contradicting_times,
    keep_known_consumers,
    list_timeout_needs,
    make_retention_lines,
)
from mendq.lint.values import QUEUE_TYPE, DeployTarget, UnknownValue, infer_deploy_target
from mendq.model.admission import QUEUE_NAME_PREFIX, Answer
from mendq.model.facts import Need
from mendq.model.limits import Limits
from mendq.model.policy_limits import POLICY_ATTRIBUTE
from mendq.model.producers import RefusingPolicy
from mendq.model.queue import parse_queue_arn, queue_arn_or_none
from mendq.model.queue_limits import REDRIVE_POLICY_ATTRIBUTE
from mendq.model.severity_class import SeverityClass
from mendq.model.steps import SetVisibilityTimeout
from mendq.model.tags import TagUnreadable

# Symptoms that a queue's configuration alone shows. What a template shows of
# `mapping_wastes_receives` is `concurrency_too_small` here.
CONFIGURATION_SYMPTOMS = tuple(
    symptom
    for symptom in CATALOGUE
    if symptom.is_of_configuration and symptom is not MAPPING_WASTES_RECEIVES
)
# Symptoms that a scan finds in the traffic, and that a template can show as well.
CHECKED_SYMPTOMS = (
    *CONFIGURATION_SYMPTOMS,
    TIMEOUT_TOO_SHORT,
    CONSUMER_STOPPED,
    CONSUMER_THROTTLED,
    MESSAGES_EXPIRE,
    INVALID_REQUEST,
)
# Symptoms of one mapping: a queue can have them more than once.
_SYMPTOMS_OF_MAPPINGS = (BATCH_FAILURES_NOT_REPORTED, CONCURRENCY_TOO_SMALL)
_CHECKED_SYMPTOM_NAMES = frozenset(symptom.name for symptom in CHECKED_SYMPTOMS)
# CloudFormation's own answer is "YAML aliases are not allowed in CloudFormation templates".
_ALIAS_REASON = (
    "CloudFormation refuses YAML aliases. Deploy the output of `aws cloudformation package`, which "
    "has none"
)
# Steps of work (see `WorkBudget`) for checking one queue and for reporting one result.
_WORK_STEPS_PER_QUEUE = 500
_WORK_STEPS_PER_RESULT = 500


class LintSeverity(StrEnum):
    """Severity of a finding, which follows from its severity class. The worst is the first."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


LINT_SEVERITY_BY_CLASS = {
    SeverityClass.EXPOSED: LintSeverity.ERROR,
    SeverityClass.LOSING: LintSeverity.ERROR,
    SeverityClass.STANDING_STILL: LintSeverity.ERROR,
    SeverityClass.FAILING_IN_PART: LintSeverity.WARNING,
    SeverityClass.WILL_LOSE: LintSeverity.ERROR,
    SeverityClass.MAY_LOSE: LintSeverity.WARNING,
    SeverityClass.HYGIENE: LintSeverity.NOTE,
}


@dataclass(frozen=True)
class LintFinding:
    """A symptom that a queue of the template would have after its deployment."""

    # Logical ID of the resource.
    resource: str
    symptom: str
    severity_class: SeverityClass
    # Keys from the top of the template to the value at fault.
    path: str
    # Line of that value, from 1. None if the decoder does not know it.
    line: int | None
    # The file beside the template that has this line. Empty if the template itself has it.
    file: str
    because: str
    # Lines of the template that fix it, or a comment that says what to do. Empty if lint knows
    # neither.
    remedy: tuple[str, ...]
    runbook: str
    aws_page: str
    # Path of the construct in the CDK app that made the resource. Empty without a CDK app.
    construct: str
    # The reason of the person who ignores the finding. Empty if none is given.
    ignore_reason: str = ""

    @property
    def severity(self) -> LintSeverity:
        """The severity, in the words of linters."""
        return LINT_SEVERITY_BY_CLASS[self.severity_class]


@dataclass(frozen=True)
class UncheckedPlace:
    """A place in the template that lint could not check, with the reason."""

    path: str
    line: int | None
    # The file beside the template that has this line. Empty if the template itself has it.
    file: str
    because: str
    # Symptoms that could not be checked there. Empty means all.
    symptoms: tuple[str, ...] = ()


@dataclass(frozen=True)
class LintResult:
    """Everything that lint found in one template."""

    file: str
    # Number of queues that the template declares. Queues are not counted if it is not known whether
    # they are FIFO queues.
    queues: int
    findings: Sequence[LintFinding]
    # Findings that the template or the option --ignore tells lint to ignore.
    ignored: Sequence[LintFinding]
    not_judged: Sequence[UncheckedPlace]
    # Parameters whose default was used: `parameter` is the name, `value` the default.
    defaults: Sequence[dict[str, str]]
    # Ignores inside the template that no finding needs.
    stale_ignores: Sequence[StaleEntry] = ()
    # Names of the queues by logical ID. Empty if the template does not say the name.
    queue_name_by_id: Mapping[str, str] = field(default_factory=dict)
    # Symptoms that could be checked everywhere in the template.
    checked_symptoms: frozenset[str] = frozenset()
    # Templates of nested stacks that are judged here too, as paths beside the template.
    nested_files: tuple[str, ...] = ()


_Reported = TypeVar("_Reported", LintFinding, UncheckedPlace)


def list_severities(symptom: Symptom) -> tuple[LintSeverity, ...]:
    """Return the severities that findings of a symptom can have in a template."""
    kinds = symptom.evidence_kinds_in_template
    severities = [LINT_SEVERITY_BY_CLASS[kind.severity_class] for kind in kinds]
    return tuple(dict.fromkeys(severities))


def lint(
    template: Template,
    file: str,
    deploy_target: DeployTarget,
    ignored_symptoms: Collection[str] = (),
    comment_ignores: Iterable[InlineIgnore] = (),
) -> LintResult:
    """Check all queues of a template.

    Args:
        template: The template.
        file: The name of the template in the result.
        deploy_target: Account and region of the deployment, unless the template itself contains
            them.
        ignored_symptoms: Names of symptoms whose findings count as ignored.
        comment_ignores: The ignores in comments, which the decoded template does not have.

    Raises:
        NotATemplate: The check takes more work than the template's budget has left.
    """
    known_target = replace(deploy_target, **template.deploy_target)
    declared_queues = DeclaredQueues(template, infer_deploy_target(template, known_target))
    ignores = [*list_metadata_ignores(template), *comment_ignores]
    all_findings = list[LintFinding]()
    unchecked_places = list[UncheckedPlace]()
    for finding_or_unchecked_place in _check_whole_template(declared_queues):
        template.budget.use_steps(_WORK_STEPS_PER_RESULT)
        if isinstance(finding_or_unchecked_place, UncheckedPlace):
            unchecked_places.append(finding_or_unchecked_place)
        else:
            all_findings.append(_write_remedy(finding_or_unchecked_place, template))
    findings, ignored_findings, used_ignores = _split_ignored_findings(
        all_findings, ignores, ignored_symptoms, template.budget
    )
    symptoms_not_checked = _list_symptoms_not_checked(unchecked_places)
    if template.reports_own_file_only:
        # The whole folder was checked, so ignores in its other files are not stale.
        findings = _select_own(findings)
        ignored_findings = _select_own(ignored_findings)
        unchecked_places = _select_own(unchecked_places)
    own_ignores = [ignore for ignore in ignores if not _is_of_generated(ignore, template)]
    stale_ignores = list_stale_ignores(
        own_ignores, used_ignores, symptoms_not_checked, _CHECKED_SYMPTOM_NAMES
    )
    unchecked_places.extend(_list_wrong_ignores(own_ignores))
    defaults_of_file = template.expansion.default_by_variable if template.expansion else {}
    used_parameter_defaults = [
        {"parameter": parameter_name, "value": default_text}
        for parameter_name, default_text in sorted(
            {
                **defaults_of_file,
                **template.list_loop_defaults(),
                **declared_queues.resolver.default_by_parameter,
            }.items()
        )
    ]
    return LintResult(
        file,
        len(declared_queues.queue_by_arn),
        sorted(findings, key=lambda finding: finding.severity_class.rank),
        ignored_findings,
        unchecked_places,
        used_parameter_defaults,
        stale_ignores,
        _get_queue_name_by_id(declared_queues),
        _CHECKED_SYMPTOM_NAMES - symptoms_not_checked,
        tuple(dict.fromkeys(inner.file for inner in template.list_nested_templates())),
    )


def _write_remedy(finding: LintFinding, template: Template) -> LintFinding:
    """Return a finding with its remedy in the language of the file that it is about."""
    return replace(finding, remedy=template.write_remedy(finding.file, finding.remedy))


def _split_ignored_findings(
    all_findings: Iterable[LintFinding],
    ignores: Iterable[InlineIgnore],
    ignored_symptoms: Collection[str],
    budget: WorkBudget,
) -> tuple[list[LintFinding], list[LintFinding], set[InlineIgnore]]:
    """Return the findings to report, those to ignore, and the ignores that are about them."""
    ignores_by_symptom = defaultdict[str, list[InlineIgnore]](list)
    for ignore in ignores:
        if not ignore.problem:
            ignores_by_symptom[ignore.symptom].append(ignore)
    findings = list[LintFinding]()
    ignored_findings = list[LintFinding]()
    used_ignores = set[InlineIgnore]()
    for finding in all_findings:
        ignores_of_symptom = ignores_by_symptom.get(finding.symptom, [])
        budget.use_steps(len(ignores_of_symptom))
        ignores_of_finding = _select_ignores(ignores_of_symptom, finding)
        used_ignores.update(ignores_of_finding)
        if ignores_of_finding:
            reason = ignores_of_finding[0].reason
            ignored_findings.append(replace(finding, ignore_reason=reason))
        elif finding.symptom in ignored_symptoms:
            ignored_findings.append(finding)
        else:
            findings.append(finding)
    return findings, ignored_findings, used_ignores


def _select_own(items: Iterable[_Reported]) -> list[_Reported]:
    """Return what is in the template's own file, and not in a file beside it."""
    return [item for item in items if not item.file]


def _select_ignores(ignores: Iterable[InlineIgnore], finding: LintFinding) -> list[InlineIgnore]:
    """Return the ignores that are about a finding."""
    return [
        ignore
        for ignore in ignores
        if ignore.is_about(finding.symptom, finding.resource, finding.path)
    ]


def _get_queue_name_by_id(declared_queues: DeclaredQueues) -> dict[str, str]:
    """Return the names of the queues by logical ID. A made-up name is left empty."""
    name_by_id = dict[str, str]()
    for queue_arn, logical_id in declared_queues.resolver.queue_id_by_arn.items():
        queue_name = parse_queue_arn(queue_arn).name
        is_made_up = queue_name.startswith(QUEUE_NAME_PREFIX)
        name_by_id[logical_id] = "" if is_made_up else queue_name
    return name_by_id


def _is_of_generated(ignore: InlineIgnore, template: Template) -> bool:
    """Return True if an ignore is in the metadata of a generated resource.

    It has the metadata of the resource from which it was generated.
    """
    return not ignore.paths and any(map(template.is_generated, ignore.resources))


def _list_symptoms_not_checked(unchecked_places: Iterable[UncheckedPlace]) -> frozenset[str]:
    """Return the symptoms that could not be checked somewhere.

    If lint cannot say which symptoms a place would show, these are all of them.
    """
    symptom_names = set[str]()
    for place in unchecked_places:
        symptom_names.update(place.symptoms or _CHECKED_SYMPTOM_NAMES)
    return frozenset(symptom_names)


def _list_wrong_ignores(ignores: Iterable[InlineIgnore]) -> Iterator[UncheckedPlace]:
    """Yield the places of ignores that ignore nothing, because they are not valid."""
    for ignore in ignores:
        if ignore.problem:
            yield UncheckedPlace(*ignore.place, ignore.problem)
        elif ignore.symptom not in _CHECKED_SYMPTOM_NAMES:
            yield UncheckedPlace(*ignore.place, f"lint does not check the symptom {ignore.symptom}")


def _check_whole_template(
    declared_queues: DeclaredQueues,
) -> Iterator[LintFinding | UncheckedPlace]:
    """Yield the findings of all queues, and each place that cannot be checked with the reason."""
    for queue in declared_queues.queue_by_arn.values():
        yield from _check_queue(queue, declared_queues)
    yield from _list_unchecked_parts(declared_queues)


def _check_queue(
    queue: DeclaredQueue, declared_queues: DeclaredQueues
) -> Iterator[LintFinding | UncheckedPlace]:
    """Yield the findings of one queue, and then its places that cannot be checked."""
    # Each check parses the queue's texts again and searches them for each source.
    attribute_texts = (
        attribute_text
        for attribute_text in dict.values(queue.attributes)
        if isinstance(attribute_text, str)
    )
    character_count = sum(map(len, attribute_texts))
    steps_per_character = 1 + len(queue.dlq_sources or ()) // 16
    declared_queues.template.budget.use_steps(
        _WORK_STEPS_PER_QUEUE + character_count * steps_per_character
    )
    findings, symptom_names_by_cause = _check_symptoms(queue, declared_queues)
    unknown_dlq_reason = _explain_unknown_dlq(queue, declared_queues)
    if unknown_dlq_reason:
        symptom_names = symptom_names_by_cause[REDRIVE_POLICY_ATTRIBUTE, unknown_dlq_reason]
        names_of_dlq_symptoms = _list_symptoms_that_need(Need.DLQ, Need.DLQ_SOURCES)
        symptom_names.extend(name for name in names_of_dlq_symptoms if name not in symptom_names)
    yield from findings
    for (attribute, reason), symptom_names in symptom_names_by_cause.items():
        place = declared_queues.find_place(queue, [attribute])
        yield _make_unchecked_place(declared_queues, place, reason, *symptom_names)
    for consumer in queue.lambda_consumers:
        if consumer.why_timeout_unknown:
            reason = f"how long its function may run: {consumer.why_timeout_unknown}"
            place = declared_queues.find_resource_place(consumer.event_source_mapping)
            yield _make_unchecked_place(declared_queues, place, reason, TIMEOUT_TOO_SHORT.name)
        if consumer.why_settings_unknown:
            place = declared_queues.find_resource_place(consumer.event_source_mapping)
            yield _make_unchecked_place(declared_queues, place, consumer.why_settings_unknown)
    yield from _list_refusals(queue, declared_queues)
    yield from _check_rival_policies(queue, declared_queues)
    yield from _list_open_admissions(queue, declared_queues)


def _list_refusals(queue: DeclaredQueue, declared_queues: DeclaredQueues) -> Iterator[LintFinding]:
    """Yield each reason why SQS refuses the queue, or why Lambda refuses one of its mappings."""
    for refusal in queue.refusals:
        fault = DetectedFault(refusal.because, evidence_kind=REFUSED_IN_TEMPLATE)
        finding = _make_finding(declared_queues, INVALID_REQUEST, queue, [refusal.attribute], fault)
        yield replace(finding, remedy=make_refusal_remedy(refusal, queue, declared_queues))
    for consumer in queue.lambda_consumers:
        for reason in consumer.refusal_reasons:
            fault = DetectedFault(
                f"Lambda refuses the mapping: {reason}",
                mapping_id=consumer.mapping_id,
                evidence_kind=REFUSED_IN_TEMPLATE,
            )
            finding = _make_finding(declared_queues, INVALID_REQUEST, queue, [], fault)
            finding = replace(
                finding, remedy=make_mapping_refusal_remedy(consumer, reason, declared_queues)
            )
            yield _place_at_mapping(finding, fault, declared_queues)


def _check_rival_policies(
    queue: DeclaredQueue, declared_queues: DeclaredQueues
) -> Iterator[LintFinding]:
    """Yield a finding if several resources set a queue's policy, and each refuses a producer.

    SQS keeps only the last one that is deployed, and the order of the deployment is not known.
    """
    reasons = list[str]()
    fault = None
    for policy, policy_text in queue.rival_policies:
        if not isinstance(policy_text, str):
            return
        attributes = QueueAttributes({**queue.attributes, POLICY_ATTRIBUTE: policy_text})
        fault = find_refused_producers(replace(queue, attributes=attributes))
        if fault is None:
            return
        reasons.append(f"with {policy.logical_id}, {fault.because}")
    if fault is None:
        return
    last_policy, _ = queue.rival_policies[-1]
    policy_names = " and ".join(policy.logical_id for policy, _ in queue.rival_policies)
    because = (
        f"{policy_names} each set this queue's policy, and SQS keeps only one: {'; '.join(reasons)}"
    )
    finding = _make_finding(
        declared_queues, PRODUCER_REFUSED, queue, [], replace(fault, because=because)
    )
    place = declared_queues.find_resource_place(last_policy)
    yield replace(
        finding,
        path=place.path,
        line=place.line,
        file=place.file,
        remedy=("# put the statements of all these policies into one of them",),
    )


def _list_open_admissions(
    queue: DeclaredQueue, declared_queues: DeclaredQueues
) -> Iterator[UncheckedPlace]:
    """Yield the producers of a queue for which the template leaves open whether they are admitted.

    If the policy of the queue itself is not known, `_check_symptoms` says so.
    """
    try:
        admissions = list(list_producer_admissions(queue))
    except UnknownValue:
        return
    for admission in admissions:
        producer = admission.producer
        if admission.answer is not Answer.UNKNOWN or not isinstance(producer, DeclaredProducer):
            continue
        reason = (
            f"cannot tell if {producer.name} may send to {queue.resource.logical_id}: the "
            f"{admission.refusing_policy.value} depends on values that are known only at deployment"
        )
        place = declared_queues.template.find_place("Resources", producer.logical_id)
        yield _make_unchecked_place(declared_queues, place, reason, PRODUCER_REFUSED.name)


def _check_symptoms(
    queue: DeclaredQueue, declared_queues: DeclaredQueues
) -> tuple[list[LintFinding], dict[tuple[str, str], list[str]]]:
    """Check one queue for all symptoms.

    Returns:
        The findings, and the names of the symptoms that could not be checked. The names are grouped
        by the reason and by the unknown attribute, which is empty if no attribute is the cause.
    """
    findings = list[LintFinding]()
    symptom_names_by_cause = defaultdict[tuple[str, str], list[str]](list)
    for symptom in CHECKED_SYMPTOMS:
        check_function = _check_timeout if symptom is TIMEOUT_TOO_SHORT else _check_symptom
        try:
            finding = check_function(symptom, queue, declared_queues)
        except (UnknownValue, TagUnreadable) as error:
            attribute = error.attribute if isinstance(error, UnknownValue) else ""
            symptom_names_by_cause[attribute, str(error)].append(symptom.name)
            continue
        if finding is not None:
            findings.append(finding)
        if symptom in _SYMPTOMS_OF_MAPPINGS:
            findings += _check_further_mappings(symptom, queue, declared_queues)
    return findings, symptom_names_by_cause


def _check_further_mappings(
    symptom: Symptom, queue: DeclaredQueue, declared_queues: DeclaredQueues
) -> Iterator[LintFinding]:
    """Yield the findings about all mappings of a queue but the first that has the symptom."""
    find_fault = _get_fault_finder(symptom)
    fault = find_fault(queue) if find_fault else None
    while fault is not None and find_fault is not None:
        mapping_id = fault.mapping_id
        other_consumers = tuple(
            consumer for consumer in queue.lambda_consumers if consumer.mapping_id != mapping_id
        )
        if len(other_consumers) == len(queue.lambda_consumers):
            return
        queue = replace(queue, lambda_consumers=other_consumers)
        fault = find_fault(queue)
        finding = _check_symptom(symptom, queue, declared_queues)
        if finding is not None:
            yield finding


def _make_unchecked_place(
    declared_queues: DeclaredQueues, place: TemplatePlace, reason: str, *symptom_names: str
) -> UncheckedPlace:
    reason_with_ids = declared_queues.resolver.replace_arns_by_logical_ids(reason)
    return UncheckedPlace(*place, reason_with_ids, symptom_names)


def _make_finding(
    declared_queues: DeclaredQueues,
    symptom: Symptom,
    queue: DeclaredQueue,
    attribute_names: Sequence[str],
    fault: DetectedFault,
) -> LintFinding:
    """Return a finding about a queue.

    Its path and line are those of the first of `attribute_names` that the template sets. If the
    template sets none of them, they are those of the queue's resource.
    """
    place = declared_queues.find_place(queue, attribute_names)
    return LintFinding(
        resource=queue.resource.logical_id,
        symptom=symptom.name,
        severity_class=symptom.find_class_in_template(fault),
        path=place.path,
        line=place.line,
        file=place.file,
        because=declared_queues.resolver.replace_arns_by_logical_ids(fault.because),
        remedy=find_remedy(symptom, queue, declared_queues),
        runbook=symptom.runbook,
        aws_page=symptom.aws_page,
        construct=queue.resource.construct,
    )


def _check_symptom(
    symptom: Symptom, queue: DeclaredQueue, declared_queues: DeclaredQueues
) -> LintFinding | None:
    """Return a finding if the queue has the symptom, otherwise None.

    Raises UnknownValue if that depends on a value that the template does not determine.
    """
    queue.attributes.names_of_read_attributes.clear()
    find_fault = _get_fault_finder(symptom)
    detected_fault = find_fault(queue) if find_fault else None
    if detected_fault is None:
        return None
    if symptom is REDRIVE_CYCLE and queue.queue_arn != _choose_queue_of_cycle(
        queue, declared_queues
    ):
        return None
    names_of_read_attributes = [*queue.attributes.names_of_read_attributes]
    finding = _make_finding(
        declared_queues, symptom, queue, names_of_read_attributes, detected_fault
    )
    if symptom is PRODUCER_REFUSED:
        return _place_at_refusal(finding, queue, declared_queues)
    return _place_at_mapping(finding, detected_fault, declared_queues)


def _choose_queue_of_cycle(queue: DeclaredQueue, declared_queues: DeclaredQueues) -> str:
    """Return the ARN of the queue that the finding about a redrive cycle names.

    That is the first queue of the cycle without a consumer, which is meant as a DLQ: it must have
    no DLQ of its own. If all or none have consumers, it is the first queue in the template.
    """
    arns_of_cycle = list[str]()
    next_arn: str | None = queue.queue_arn
    while next_arn is not None and next_arn not in arns_of_cycle:
        arns_of_cycle.append(next_arn)
        next_queue = declared_queues.queue_by_arn.get(next_arn)
        next_arn = queue_arn_or_none(next_queue.dlq_arn) if next_queue else None
    queues_in_order = [
        declared_queue
        for declared_queue in declared_queues.queue_by_arn.values()
        if declared_queue.queue_arn in arns_of_cycle
    ]
    unread_queues = [
        declared_queue
        for declared_queue in queues_in_order
        if not declared_queue.lambda_consumers and not declared_queue.pipes
    ]
    return (unread_queues or queues_in_order)[0].queue_arn


def _place_at_refusal(
    finding: LintFinding, queue: DeclaredQueue, declared_queues: DeclaredQueues
) -> LintFinding:
    """Return the finding with the place of the first refusal: key, role, or producer.

    Unchanged if the policy of the queue refuses a producer.
    """
    refusals = [
        admission
        for admission in list_producer_admissions(queue)
        if admission.answer is Answer.NO and isinstance(admission.producer, DeclaredProducer)
    ]
    refusing_policies = {refusal.refusing_policy for refusal in refusals}
    if not refusals or RefusingPolicy.QUEUE_POLICY in refusing_policies:
        return finding
    refusal = refusals[0]
    assert isinstance(refusal.producer, DeclaredProducer)  # noqa: S101 - the list has no others
    keys: tuple[str, ...] = (refusal.producer.logical_id,)
    if refusal.refusing_policy is RefusingPolicy.KEY_POLICY:
        keys = (queue.key_id, "Properties", "KeyPolicy")
    elif refusal.refusing_policy is RefusingPolicy.ROLE:
        keys = (refusal.producer.role_id,)
    place = declared_queues.template.find_place("Resources", *keys)
    return replace(finding, path=place.path, line=place.line, file=place.file)


def _place_at_mapping(
    finding: LintFinding, fault: DetectedFault, declared_queues: DeclaredQueues
) -> LintFinding:
    """Return the finding with the place of the mapping at fault. Unchanged if there is none."""
    event_source_mapping = declared_queues.template.resources.get(fault.mapping_id)
    if event_source_mapping is None:
        return finding
    place = declared_queues.find_resource_place(event_source_mapping)
    return replace(finding, path=place.path, line=place.line, file=place.file)


def _find_disabled_mapping(queue: DeclaredQueue) -> DetectedFault | None:
    """Report a disabled mapping if nothing else in the template reads the queue.

    The mapping of a DLQ is often disabled until somebody wants the messages.
    """
    is_read = any(consumer.is_enabled for consumer in queue.lambda_consumers)
    if is_read or queue.pipes or queue.dlq_sources or not queue.disabled_mappings:
        return None
    return DetectedFault(
        "its event source mapping or pipe is disabled, and nothing else in the template reads it: "
        "its messages wait until they expire",
        mapping_id=queue.disabled_mappings[0].logical_id,
    )


def _find_switched_off_function(queue: DeclaredQueue) -> DetectedFault | None:
    """Report a function of the queue whose reserved concurrency is 0, unless the queue is a DLQ."""
    for consumer in queue.lambda_consumers:
        if consumer.reserved_concurrency == 0 and not queue.dlq_sources:
            return DetectedFault(
                f"Lambda never runs {consumer.name}, because its reserved concurrency is 0. Each "
                "throttled try counts as a receive",
                mapping_id=consumer.mapping_id,
            )
    return None


# How to find a symptom in a template, if that differs from the way in which a scan finds it.
_FAULT_FINDER_BY_SYMPTOM: Mapping[str, Callable[[DeclaredQueue], DetectedFault | None]] = {
    CONCURRENCY_TOO_SMALL.name: find_fault_in_template,
    CONSUMER_STOPPED.name: _find_disabled_mapping,
    CONSUMER_THROTTLED.name: _find_switched_off_function,
    MESSAGES_EXPIRE.name: find_contradicting_times,
}


def _get_fault_finder(
    symptom: Symptom,
) -> Callable[[DeclaredQueue], DetectedFault | None] | None:
    """Return the function that finds a symptom in a template."""
    find_fault = _FAULT_FINDER_BY_SYMPTOM.get(symptom.name)
    if find_fault is None and symptom.detection is not None:
        return symptom.detection.detect
    return find_fault


def _explain_unknown_dlq(queue: DeclaredQueue, declared_queues: DeclaredQueues) -> str | None:
    """Return why the attributes of the queue's DLQ are not known.

    None if the template declares the DLQ, or if the queue has none.
    """
    try:
        dlq_arn = queue_arn_or_none(queue.dlq_arn)
    except UnknownValue as error:
        return error.because
    is_dlq_known = dlq_arn is None or dlq_arn in declared_queues.queue_by_arn
    return None if is_dlq_known else f"the template does not declare {dlq_arn}"


def _check_timeout(
    symptom: Symptom, queue: DeclaredQueue, declared_queues: DeclaredQueues
) -> LintFinding | None:
    """Return a finding if the visibility timeout is shorter than consumers need or AWS advises.

    The finding's class is worse if a consumer may work longer than the timeout than if the timeout
    is only below AWS's advice. Its remedy is the timeout that Mendq would write, or a
    comment (`_make_timeout_remedy`). The hourly scan reports this symptom only later, when messages
    are harmed.

    Raises UnknownValue if a needed value is not known, and TagUnreadable if a tag is not valid.
    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
    """
    facts = keep_known_consumers(queue)
    timeout_needs = list_timeout_needs(queue)
    if not timeout_needs:
        return None
    timeout_seconds = facts.visibility_seconds
    unmet_timeout_needs = needed_timeout.list_unmet_needs(facts, timeout_needs)
    needs_advising_longer_timeout = [
        need for need in timeout_needs if need.recommended_seconds > timeout_seconds
    ]
    violated_needs = unmet_timeout_needs or needs_advising_longer_timeout
    if not violated_needs:
        return None
    timeout_ceiling_seconds = needed_timeout.read_ceiling_seconds(facts, Limits())
    need_with_longest_timeout = max(violated_needs, key=lambda need: need.minimum_goal_seconds)
    consequence_text = (
        "ends before its consumers are done"
        if unmet_timeout_needs
        else "is below what AWS advises, which leaves little room for retries"
    )
    need_source_text = need_with_longest_timeout.source_text
    fault_text = (
        f"the visibility timeout of {timeout_seconds} s {consequence_text}: {need_source_text}"
    )
    fault_text += needed_timeout.describe_longer_advised_timeout(timeout_needs, timeout_seconds)
    goal_timeout_seconds = needed_timeout.choose_goal_seconds(
        facts, timeout_needs, timeout_ceiling_seconds
    )
    evidence_kind = _find_timeout_evidence(facts)
    if evidence_kind is REFUSED_BY_LAMBDA:
        fault_text += ". Lambda refuses to create such a mapping"
    fault = DetectedFault(fault_text, evidence_kind=evidence_kind)
    finding = _make_finding(
        declared_queues, symptom, queue, [SetVisibilityTimeout.attribute], fault
    )
    if declared_queues.template.is_generated(queue.resource.logical_id):
        return finding
    timeout_remedy = _make_timeout_remedy(
        declared_queues, timeout_seconds, goal_timeout_seconds, timeout_ceiling_seconds
    )
    if timeout_seconds < goal_timeout_seconds <= SetVisibilityTimeout.maximum:
        timeout_remedy += make_retention_lines(queue, declared_queues, goal_timeout_seconds)
    remedy = declared_queues.template.adapt_remedy(
        queue.resource.logical_id, symptom.name, timeout_remedy
    )
    return replace(finding, remedy=remedy)


def _find_timeout_evidence(facts: DeclaredQueue) -> EvidenceKind:
    """Return the kind of evidence of a visibility timeout that is too short.

    If the work alone may take longer than the timeout, a message is handled twice in normal
    operation. If only the work and a full batching window take longer, that needs a long run after
    a long wait.
    """
    for consumer in facts.lambda_consumers:
        if consumer.timeout_seconds > facts.visibility_seconds:
            return REFUSED_BY_LAMBDA
    for pipe_run in facts.pipe_runs:
        if pipe_run.timeout_seconds > facts.visibility_seconds:
            return BELOW_NEED
    consumers_without_window = tuple(
        replace(consumer, batching_window_seconds=0) for consumer in facts.lambda_consumers
    )
    facts_without_window = replace(facts, lambda_consumers=consumers_without_window)
    needs = needed_timeout.list_named_needs(facts_without_window)
    has_unmet_need = needed_timeout.list_unmet_needs(facts_without_window, needs)
    return BELOW_NEED if has_unmet_need else BELOW_ADVICE


def _make_timeout_remedy(
    declared_queues: DeclaredQueues,
    timeout_seconds: int,
    goal_timeout_seconds: int,
    timeout_ceiling_seconds: int,
) -> tuple[str, ...]:
    """Return the template line that sets the visibility timeout.

    If SQS allows no timeout that is long enough, or if the ceiling allows none above the declared
    one, return a comment that says so.

    Args:
        declared_queues: The template's queues.
        timeout_seconds: The declared timeout.
        goal_timeout_seconds: The timeout that heal would write.
        timeout_ceiling_seconds: The longest timeout that heal may write.
    """
    longest_timeout_seconds = SetVisibilityTimeout.maximum
    if goal_timeout_seconds > longest_timeout_seconds:
        reason = f"no visibility timeout is longer than {longest_timeout_seconds} s"
        return (f"# {reason}: give the function a shorter timeout",)
    if goal_timeout_seconds <= timeout_seconds:
        ceiling_tag_name = needed_timeout.MAX_VISIBILITY_TAG
        ceiling_text = f"the ceiling of {timeout_ceiling_seconds} s"
        return (f"# over {ceiling_text}, which the tag {ceiling_tag_name} raises",)
    return declared_queues.template.render_declaration(
        SetVisibilityTimeout.attribute, goal_timeout_seconds
    )


def _list_tool_refusals(template: Template) -> Iterator[LintFinding]:
    """Yield what SAM refuses at deployment, so that the whole template is not deployed."""
    refusal_by_keys = template.expansion.refusal_by_keys if template.expansion else {}
    for keys, refusal in refusal_by_keys.items():
        place = template.find_place(*keys)
        yield LintFinding(
            resource=str(keys[1]),
            symptom=INVALID_REQUEST.name,
            severity_class=REFUSED_IN_TEMPLATE.severity_class,
            path=place.path,
            line=place.line,
            file=place.file,
            because=refusal.because,
            remedy=(f"# {refusal.advice}",),
            runbook=INVALID_REQUEST.runbook,
            aws_page=INVALID_REQUEST.aws_page,
            construct="",
        )


def _list_unchecked_parts(
    declared_queues: DeclaredQueues,
) -> Iterator[LintFinding | UncheckedPlace]:
    """Yield the places outside single queues that lint cannot check, and what SAM refuses.

    These are macros, and resources that lint cannot check (see `_explain_unchecked_resource`).
    """
    template = declared_queues.template
    for file_template in (template, *template.list_nested_templates()):
        yield from _list_unchecked_parts_of_file(file_template)
        yield from _list_tool_refusals(file_template)
    for resource in template.resources.values():
        yield from _explain_unchecked_resource(resource, declared_queues)


def _list_unchecked_parts_of_file(template: Template) -> Iterator[UncheckedPlace]:
    """Yield the macros of one template, and what its transforms cannot expand."""
    for transform in to_list(template.root.get("Transform")):
        if transform == SAM_TRANSFORM and template.expansion:
            continue
        if transform == LANGUAGE_EXTENSIONS_TRANSFORM:
            # Its functions are resolved like CloudFormation's own, or listed where they are.
            continue
        macro_name = transform if isinstance(transform, str) else "a macro"
        place = template.find_place("Transform")
        yield UncheckedPlace(*place, f"what {macro_name} makes of the template is not known here")
    for keys, reason in template.reason_by_unread_loop.items():
        yield UncheckedPlace(*template.find_own_place(keys), reason)
    if template.first_alias is not None:
        yield UncheckedPlace(*template.first_alias, _ALIAS_REASON)
    if template.expansion:
        for keys, reason in template.expansion.reason_by_unread_keys.items():
            yield UncheckedPlace(*template.find_place(*keys), reason)


def _explain_unchecked_resource(
    resource: TemplateResource, declared_queues: DeclaredQueues
) -> Iterator[UncheckedPlace]:
    """Yield the place of a resource, with the reason, if lint cannot check the resource.

    Lint cannot check an `Fn::` function in place of resources, a nested stack, or a queue or event
    source mapping whose values are not known. For any other resource, nothing is yielded.
    """
    is_function = (
        resource.logical_id.startswith("Fn::") and UNKNOWN_VALUE_FUNCTION not in resource.definition
    )
    nested_stack_reason = declared_queues.template.nested.reason_by_unread_id.get(
        resource.logical_id
    )
    place = declared_queues.find_resource_place(resource)
    error = None
    if resource.type in (EVENT_SOURCE_MAPPING_TYPE, QUEUE_TYPE):
        error = declared_queues.unknown_value_by_logical_id.get(resource.logical_id)
    if not is_function and nested_stack_reason is None and error is None:
        return
    if is_function:
        yield UncheckedPlace(*place, "it is written out when deployed")
    elif nested_stack_reason is not None:
        yield UncheckedPlace(*place, nested_stack_reason)
    elif error is not None:
        symptoms: tuple[str, ...] = ()
        if resource.type == EVENT_SOURCE_MAPPING_TYPE:
            symptoms_needing_consumers = _list_symptoms_that_need(Need.LAMBDA_CONSUMERS)
            symptoms = (TIMEOUT_TOO_SHORT.name, *symptoms_needing_consumers)
        yield _make_unchecked_place(declared_queues, place, error.because, *symptoms)


def _list_symptoms_that_need(*needs: Need) -> tuple[str, ...]:
    """Return the names of the configuration symptoms whose checks read any of these facts."""
    return tuple(
        symptom.name
        for symptom in CONFIGURATION_SYMPTOMS
        if not symptom.all_needs.isdisjoint(needs)
    )
