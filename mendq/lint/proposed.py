"""A queue, or a policy of queues, that CloudFormation is about to make or change, by itself.

What else is in its stack is not known here. Of a queue these are its policy, its DLQ, what reads it
and what names it as a DLQ; of a policy the queues' own attributes. Only what the properties tell is
judged. What is in them is anybody's text: measured before it is looked at, and shown as plain text.
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
from mendq.lint.template import NotATemplate, Template, WorkBudget, scalars_as_text, to_list
from mendq.lint.values import QUEUE, DeployTarget
from mendq.model.facts import Need
from mendq.model.queue import arn_of_url, parts_of
from mendq.notifications.text import Section, body, format_count, plain

TARGETS = (QUEUE, *POLICIES)
# About half a second of a whole processor, and far more than a queue with a policy takes.
MOST_STEPS = 500_000
# CloudFormation cuts a message after 4,096 characters.
MOST_MESSAGE, _MOST_LINE = 4_000, 900
_NAME = re.compile(r"[A-Za-z0-9]{1,255}")
_NOT_KNOWN, _KEY = {"Fn::ImportValue": "another resource"}, "KmsMasterKeyId"
_OF_OTHERS = {Need.LAMBDA_CONSUMERS, Need.DLQ_SOURCES}
# Symptoms that other resources than the queue may bring about.
_ELSEWHERE = {each.name for each in CHECKED_SYMPTOMS if _OF_OTHERS & each.every_need}


@dataclass(frozen=True)
class ProposedCheck:
    """What the properties show; `undecided` are the symptoms of which they tell too little."""

    name: str
    findings: Sequence[LintFinding]
    undecided: Sequence[str]

    def message(self) -> str:
        """For whoever deploys: each symptom with its reason, the lines to write and its runbook."""
        left = f"; not decided: {', '.join(self.undecided)}" if self.undecided else ""
        said = f"Mendq: {format_count(len(self.findings), 'finding')} in {self.name}{left}"
        found = [Section(f"{each.severity} {each.symptom}", _lines(each)) for each in self.findings]
        return body((said,), found, MOST_MESSAGE).strip()


def check_proposed(
    target: str,
    name: object,
    properties: object,
    where: DeployTarget,
    ignored: Collection[str] = (),
) -> ProposedCheck:
    """The target as it would be, one of TARGETS, without the symptoms that are `ignored`.

    Raises NotATemplate where the properties are none, or more than anybody writes.
    """
    work = WorkBudget(MOST_STEPS)
    own = name if isinstance(name, str) and _NAME.fullmatch(name) else "Resource"
    given = scalars_as_text(properties, work)
    if not isinstance(given, dict):
        raise NotATemplate("its properties are no mapping")
    queues, undecided = dict[str, str](), set[str]()
    if target == QUEUE:
        given[POLICY], undecided = _NOT_KNOWN, {*_ELSEWHERE}
    else:
        queues = _queues_of(given, own, POLICIES[target], where)
    resources = {own: {"Type": target, "Properties": given}}
    for stand_in, arn in queues.items():
        name = {"QueueName": parts_of(arn).name} if arn else {}
        resources[stand_in] = {"Type": QUEUE, "Properties": {**name, _KEY: _NOT_KNOWN}}
    linted = lint(Template({"Resources": resources}, work), "", where, ignored)
    # One of each: a policy says the same of every queue of its.
    found = {
        each.symptom: _with_arn(each, queues)
        for each in reversed(linted.findings)
        if f"{each.path}.".startswith(f"Resources.{own}.")
    }
    undecided.update(symptom for each in linted.not_judged for symptom in each.symptoms)
    return ProposedCheck(own, [*reversed(found.values())], sorted(undecided - {*found, *ignored}))


def _queues_of(given: Any, own: str, named_in: str, where: DeployTarget) -> dict[str, str]:
    """What stands in for the queues of a policy, with their ARNs; one is empty if any is unknown.

    Which queues the policy is about is then not known either.
    """
    arns = [arn_of_url(each, where.region) or "" for each in to_list(given.get(named_in))]
    if not arns or not all(arns):
        given[named_in], arns = _NOT_KNOWN, [""]
    return {f"{own}Of{number}": arn for number, arn in enumerate(arns)}


def _with_arn(finding: LintFinding, queues: dict[str, str]) -> LintFinding:
    """Lines that name a queue of another resource by its ARN, which is known."""
    arn = queues.get(finding.resource)
    named = json.dumps({"Fn::GetAtt": [finding.resource, "Arn"]})
    lines = (each.replace(named, json.dumps(arn)) if arn else each for each in finding.remedy)
    return replace(finding, remedy=tuple(lines))


def _lines(finding: LintFinding) -> tuple[str, ...]:
    said = (f"{finding.because}.", *finding.remedy, f"runbook: {finding.runbook}")
    return tuple(plain(each, _MOST_LINE) for each in said)
