"""Check one queue, or one queue policy, that CloudFormation is about to create or change.

CloudFormation's hook passes only the properties of this resource, not the rest of its stack. For a
queue, its policy, DLQ, consumers and sources are not known here. For a policy, the attributes of
its queues are not known. So only symptoms that the properties alone show can be reported. The
properties may come from anyone, so their size is limited and they are shown as plain text.
https://docs.aws.amazon.com/cloudformation-cli/latest/hooks-userguide/lambda-hooks-create-lambda-function.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mendq.lint.judging import CHECKED_SYMPTOMS, LintFinding, lint
from mendq.lint.queues import QUEUES_PROPERTY_BY_POLICY_TYPE
from mendq.lint.template import NotATemplate, Template, WorkBudget, convert_scalars_to_text, to_list
from mendq.lint.values import QUEUE_TYPE, DeployTarget
from mendq.model.facts import Need
from mendq.model.policy_limits import POLICY_ATTRIBUTE
from mendq.model.queue import arn_of_url, parse_queue_arn
from mendq.notifications.text import Section, format_count, make_body, to_terminal_text

# Resource types that can be checked.
CHECKED_RESOURCE_TYPES = (QUEUE_TYPE, *QUEUES_PROPERTY_BY_POLICY_TYPE)
# About half a second of a whole processor, and far more than a queue with a policy takes.
MAXIMUM_WORK_STEPS = 500_000
# CloudFormation cuts a message after 4,096 characters.
MOST_MESSAGE_CHARACTERS = 4_000
_MOST_LINE_CHARACTERS = 900
_LOGICAL_ID_REGEX = re.compile(r"[A-Za-z0-9]{1,255}")
# Stands for a value that is not known here, because lint cannot resolve this function.
_UNKNOWN_VALUE = {"Fn::ImportValue": "another resource"}
_KMS_KEY_PROPERTY = "KmsMasterKeyId"
_NEEDS_OF_OTHER_RESOURCES = {Need.LAMBDA_CONSUMERS, Need.DLQ_SOURCES}
# Symptoms that depend on other resources than the queue.
_UNDECIDABLE_SYMPTOMS = {
    symptom.name for symptom in CHECKED_SYMPTOMS if _NEEDS_OF_OTHER_RESOURCES & symptom.all_needs
}


@dataclass(frozen=True)
class ProposedResourceCheck:
    """Result of the check of one resource that CloudFormation is about to create or change."""

    logical_id: str
    findings: Sequence[LintFinding]
    # Symptoms that the properties alone cannot decide.
    undecided_symptoms: Sequence[str]

    def format_message(self) -> str:
        """Return the message that CloudFormation shows to the person who deploys.

        For each finding it has the symptom, the reason, the template lines that fix it and the
        runbook. Lines are dropped if the message is longer than MOST_MESSAGE_CHARACTERS.
        """
        undecided_text = (
            f"; not decided: {', '.join(self.undecided_symptoms)}"
            if self.undecided_symptoms
            else ""
        )
        finding_count = format_count(len(self.findings), "finding")
        message_sections = [
            Section(f"{finding.severity} {finding.symptom}", _make_message_lines(finding))
            for finding in self.findings
        ]
        opening_line = f"Mendq: {finding_count} in {self.logical_id}{undecided_text}"
        return make_body((opening_line,), message_sections, MOST_MESSAGE_CHARACTERS).strip()


def check_proposed_resource(
    resource_type: str,
    requested_id: object,
    properties: object,
    deploy_target: DeployTarget,
    ignored_symptoms: Collection[str] = (),
) -> ProposedResourceCheck:
    """Check a queue or a queue policy that CloudFormation is about to create or change.

    Args:
        resource_type: The resource's type, one of CHECKED_RESOURCE_TYPES.
        requested_id: The resource's logical ID. `Resource` is used in place of an invalid one.
        properties: The resource's properties.
        deploy_target: Account and region of the deployment.
        ignored_symptoms: Names of symptoms that are not reported.

    Returns:
        The first finding of each symptom, and the names of the other symptoms that cannot be
        decided from the properties alone. Neither contains `ignored_symptoms`.

    Raises:
        NotATemplate: The properties are not a mapping, or are too large or nested too deep.
    """
    budget = WorkBudget(MAXIMUM_WORK_STEPS)
    logical_id = (
        requested_id
        if isinstance(requested_id, str) and _LOGICAL_ID_REGEX.fullmatch(requested_id)
        else "Resource"
    )
    resource_properties = convert_scalars_to_text(properties, budget)
    if not isinstance(resource_properties, dict):
        raise NotATemplate("its properties are not a mapping")
    queue_arn_by_id = dict[str, str]()
    possibly_undecided_symptoms = set[str]()
    if resource_type == QUEUE_TYPE:
        resource_properties[POLICY_ATTRIBUTE] = _UNKNOWN_VALUE
        possibly_undecided_symptoms = {*_UNDECIDABLE_SYMPTOMS}
    else:
        queue_arn_by_id = _replace_queue_references(
            resource_properties,
            logical_id,
            QUEUES_PROPERTY_BY_POLICY_TYPE[resource_type],
            deploy_target,
        )
    definition_by_id = {logical_id: {"Type": resource_type, "Properties": resource_properties}}
    for stand_in_queue_id, queue_arn in queue_arn_by_id.items():
        stand_in_properties: dict[str, Any] = {_KMS_KEY_PROPERTY: _UNKNOWN_VALUE}
        if queue_arn:
            stand_in_properties = {
                "QueueName": parse_queue_arn(queue_arn).name,
                _KMS_KEY_PROPERTY: _UNKNOWN_VALUE,
            }
        definition_by_id[stand_in_queue_id] = {
            "Type": QUEUE_TYPE,
            "Properties": stand_in_properties,
        }
    lint_result = lint(
        Template({"Resources": definition_by_id}, budget), "", deploy_target, ignored_symptoms
    )
    # A policy has the same finding for each of its queues: keep the first of each symptom.
    finding_by_symptom = dict[str, LintFinding]()
    for finding in reversed(lint_result.findings):
        if f"{finding.path}.".startswith(f"Resources.{logical_id}."):
            finding_by_symptom[finding.symptom] = _replace_reference_by_arn(
                finding, queue_arn_by_id
            )
    for unchecked_place in lint_result.not_judged:
        possibly_undecided_symptoms.update(unchecked_place.symptoms)
    undecided_symptoms = sorted(
        possibly_undecided_symptoms - {*finding_by_symptom, *ignored_symptoms}
    )
    return ProposedResourceCheck(
        logical_id, [*reversed(finding_by_symptom.values())], undecided_symptoms
    )


def _replace_queue_references(
    policy_properties: Any, policy_id: str, property_name: str, deploy_target: DeployTarget
) -> dict[str, str]:
    """Return the ARNs of the queues that a policy names, by a made-up logical ID for each queue.

    If the policy names no queue, or if any of the ARNs is not known, the result has one queue with
    an empty ARN. Then the property that names the queues is replaced in `policy_properties` by a
    value that counts as unknown.
    """
    queue_urls = to_list(policy_properties.get(property_name))
    queue_arns = [arn_of_url(queue_url, deploy_target.region) or "" for queue_url in queue_urls]
    if not queue_arns or not all(queue_arns):
        policy_properties[property_name] = _UNKNOWN_VALUE
        queue_arns = [""]
    return {
        f"{policy_id}Of{queue_number}": queue_arn
        for queue_number, queue_arn in enumerate(queue_arns)
    }


def _replace_reference_by_arn(finding: LintFinding, queue_arn_by_id: dict[str, str]) -> LintFinding:
    """Replace the reference to a queue in a finding's remedy by the queue's ARN.

    The reference contains a made-up logical ID that is not in the user's template.
    """
    queue_arn = queue_arn_by_id.get(finding.resource)
    if not queue_arn:
        return finding
    arn_reference = json.dumps({"Fn::GetAtt": [finding.resource, "Arn"]})
    remedy_lines = tuple(
        line.replace(arn_reference, json.dumps(queue_arn)) for line in finding.remedy
    )
    return replace(finding, remedy=remedy_lines)


def _make_message_lines(finding: LintFinding) -> tuple[str, ...]:
    """Return the lines of the message about one finding: the reason, the remedy and the runbook."""
    message_lines = (f"{finding.because}.", *finding.remedy, f"runbook: {finding.runbook}")
    return tuple(to_terminal_text(line, _MOST_LINE_CHARACTERS) for line in message_lines)
