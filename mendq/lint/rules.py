"""The catalogue's checks as rules of cfn-lint itself: `cfn-lint -a mendq.lint.rules -t TEMPLATE`.

cfn-lint leaves the numbers from 9000 to rules of others, and numbers the lines of a file of custom
rules from there. A symptom's number is made of its name, so that none moves when one is added.
https://github.com/aws-cloudformation/cfn-lint/blob/main/docs/rules.md
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any
from zlib import crc32

from cfnlint.rules import CloudFormationLintRule, RuleMatch

from mendq.catalogue.symptom import Symptom
from mendq.lint.decode import read_template
from mendq.lint.judging import CHECKED_SYMPTOMS, LintSeverity, lint, list_severities
from mendq.lint.template import NotATemplate, Template
from mendq.lint.values import DeployTarget
from mendq.notifications.text import visible

# Places of which nothing can be said: cfn-lint shows them with `-c I`.
NOT_JUDGED, NO_TEMPLATE = "I9500", "W9500"
_FIRST, _NUMBERS = 9501, 499
_MOST_SAID = 1_000
Said = tuple[str, str, str]


def rule_id(symptom: str, severity: LintSeverity) -> str:
    """The ID of what is said of a symptom: E or W, and a number that its name gives."""
    return f"{severity.value[0].upper()}{_FIRST + crc32(symptom.encode()) % _NUMBERS}"


class _Rule(CloudFormationLintRule):  # type: ignore[misc] # cfn-lint has no types
    """Says what `mendq lint` says; cfn-lint passes over it, as it has no ID."""

    tags = ("mendq", "sqs")

    def match(self, cfn: Any) -> list[RuleMatch]:
        found = (each for each in _judged(cfn) if each[0] == self.id)
        return [RuleMatch(path.split("."), visible(says, _MOST_SAID)) for _, path, says in found]


@lru_cache(maxsize=1)
def _judged(cfn: Any) -> tuple[Said, ...]:
    """Of a template the rule, the path and what is said; each rule asks for it."""
    return tuple(_said(json.dumps(cfn.template, default=str).encode()))


def _said(content: bytes) -> Iterator[Said]:
    try:
        # A message is one line, and so is what this one writes.
        judged = lint(Template(read_template(content).root), "", DeployTarget())
    except NotATemplate as error:
        yield NO_TEMPLATE, "Resources", f"not judged at all: {error}"
        return
    for each in judged.findings:
        remedy = f"; remedy: {'; '.join(each.remedy)}" if each.remedy else ""
        says = f"{each.symptom}: {each.because}{remedy}; see {each.runbook}"
        yield rule_id(each.symptom, each.severity), each.path, says
    for place in judged.not_judged:
        yield NOT_JUDGED, place.path, f"not judged: {place.because}"


def _made(symptom: Symptom, severity: LintSeverity) -> type[_Rule]:
    of = {"shortdesc": symptom.name, "source_url": symptom.aws_page}
    of |= {"id": rule_id(symptom.name, severity), "description": symptom.sentence}
    return type(of["id"], (_Rule,), of)


RULES = tuple(_made(each, how) for each in CHECKED_SYMPTOMS for how in list_severities(each))
# cfn-lint takes the classes that a module names.
globals().update({each.id: each for each in RULES})


class UncheckedPlaceRule(_Rule):
    id, shortdesc = NOT_JUDGED, "not judged"
    description = "Mendq cannot say from the template how this is."


class UncheckedTemplateRule(_Rule):
    id, shortdesc = NO_TEMPLATE, "not judged at all"
    description = "Mendq takes no template as large or as costly as this one."
