"""Check of one queue, or one policy of queues, that CloudFormation is about to create or change.

CloudFormation's hook passes only the properties of that resource, and nothing else of its stack.
For a queue, its policy, DLQ, consumers and sources are not known here. For a policy, the attributes
of its queues are not known. So only symptoms that the properties themselves show are checked. The
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
from mendq.lint.queues import POLICIES, POLICY
from mendq.lint.template import NotATemplate, Template, WorkBudget, scalars_to_text, to_list
from mendq.lint.values import QUEUE, DeployTarget
from mendq.model.facts import Need
from mendq.model.queue import arn_of_url, parts_of
from mendq.notifications.text import Section, body, format_count, plain

# Resource types that can be checked.
TARGETS = (QUEUE, *POLICIES)
# About half a second of a whole processor, and far more than a queue with a policy takes.
MOST_STEPS = 500_000
# CloudFormation cuts a message after 4,096 characters.
MOST_MESSAGE = 4_000
_MOST_LINE_CHARACTERS = 900
_LOGICAL_ID = re.compile(r"[A-Za-z0-9]{1,255}")
# Stands for a value that is not known here, because lint cannot resolve this function.
_NOT_KNOWN = {"Fn::ImportValue": "another resource"}
_KEY = "KmsMasterKeyId"
_NEEDS_FROM_OTHERS = {Need.LAMBDA_CONSUMERS, Need.DLQ_SOURCES}
# Symptoms that depend on other resources than the queue.
_UNDECIDABLE = {
    symptom.name for symptom in CHECKED_SYMPTOMS if _NEEDS_FROM_OTHERS & symptom.every_need
}


@dataclass(frozen=True)
class ProposedCheck:
    """Result of the check of one resource."""

    name: str
    findings: Sequence[LintFinding]
    # Symptoms that the properties alone cannot decide.
    undecided: Sequence[str]

    def message(self) -> str:
        """Return the message for the person who deploys.

        It has each symptom with its reason, the lines to write and the runbook.
        """
        undecided = f"; not decided: {', '.join(self.undecided)}" if self.undecided else ""
        count = format_count(len(self.findings), "finding")
        sections = [
            Section(f"{finding.severity} {finding.symptom}", _list_lines(finding))
            for finding in self.findings
        ]
        opening = f"Mendq: {count} in {self.name}{undecided}"
        return body((opening,), sections, MOST_MESSAGE).strip()


def check_proposed(
    target_type: str,
    name: object,
    properties: object,
    target: DeployTarget,
    ignored: Collection[str] = (),
) -> ProposedCheck:
    """Check a resource that CloudFormation is about to create or change.

    Args:
        target_type: The resource's type, one of TARGETS.
        name: The resource's logical ID. `Resource` is used in place of an invalid one.
        properties: The resource's properties.
        target: Account and region of the deployment.
        ignored: Names of symptoms that are not reported.

    Returns:
        One finding for each symptom, and the symptoms that the properties alone cannot decide.

    Raises:
        NotATemplate: The properties are no mapping, or too large to check.
    """
    work = WorkBudget(MOST_STEPS)
    own_id = name if isinstance(name, str) and _LOGICAL_ID.fullmatch(name) else "Resource"
    own_properties = scalars_to_text(properties, work)
    if not isinstance(own_properties, dict):
        raise NotATemplate("its properties are no mapping")
    arns = dict[str, str]()
    undecided = set[str]()
    if target_type == QUEUE:
        own_properties[POLICY] = _NOT_KNOWN
        undecided = {*_UNDECIDABLE}
    else:
        arns = _replace_queues(own_properties, own_id, POLICIES[target_type], target)
    resources = {own_id: {"Type": target_type, "Properties": own_properties}}
    for stand_in, arn in arns.items():
        stand_in_properties: dict[str, Any] = {_KEY: _NOT_KNOWN}
        if arn:
            stand_in_properties = {"QueueName": parts_of(arn).name, _KEY: _NOT_KNOWN}
        resources[stand_in] = {"Type": QUEUE, "Properties": stand_in_properties}
    result = lint(Template({"Resources": resources}, work), "", target, ignored)
    # A policy has the same finding for each of its queues: keep the first of each symptom.
    findings = dict[str, LintFinding]()
    for finding in reversed(result.findings):
        if f"{finding.path}.".startswith(f"Resources.{own_id}."):
            findings[finding.symptom] = _write_out_arn(finding, arns)
    for place in result.not_judged:
        undecided.update(place.symptoms)
    not_decided = sorted(undecided - {*findings, *ignored})
    return ProposedCheck(own_id, [*reversed(findings.values())], not_decided)


def _replace_queues(
    properties: Any, policy_id: str, property_name: str, target: DeployTarget
) -> dict[str, str]:
    """Return the ARNs of the queues that a policy names, each under a made-up logical ID.

    If the ARN of any queue is not known, the policy's property is replaced by an unknown value, and
    the result is one queue with an empty ARN.
    """
    urls = to_list(properties.get(property_name))
    arns = [arn_of_url(url, target.region) or "" for url in urls]
    if not arns or not all(arns):
        properties[property_name] = _NOT_KNOWN
        arns = [""]
    return {f"{policy_id}Of{number}": arn for number, arn in enumerate(arns)}


def _write_out_arn(finding: LintFinding, arns: dict[str, str]) -> LintFinding:
    """Return the finding with the queue's ARN in its remedy, in place of a reference to the queue.

    The logical ID of the reference was made up, so no template has it.
    """
    arn = arns.get(finding.resource)
    if not arn:
        return finding
    reference = json.dumps({"Fn::GetAtt": [finding.resource, "Arn"]})
    lines = tuple(line.replace(reference, json.dumps(arn)) for line in finding.remedy)
    return replace(finding, remedy=lines)


def _list_lines(finding: LintFinding) -> tuple[str, ...]:
    """Return the lines of the message about one finding."""
    lines = (f"{finding.because}.", *finding.remedy, f"runbook: {finding.runbook}")
    return tuple(plain(line, _MOST_LINE_CHARACTERS) for line in lines)
