"""The catalogue's checks as rules for cfn-lint: `cfn-lint -a mendq.lint.rules -t TEMPLATE`.

cfn-lint reserves the rule numbers from 9000 for additional rules. It uses the first of them for the
lines of a custom rules file, so the rules here begin at 9500. The number of a rule is computed from
the name of its symptom, so that a new symptom changes no other number.
https://github.com/aws-cloudformation/cfn-lint/blob/main/docs/rules.md
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple
from zlib import crc32

from cfnlint.rules import CloudFormationLintRule, RuleMatch

from mendq.catalogue.symptom import Symptom
from mendq.lint.decode import read_template
from mendq.lint.judging import CHECKED_SYMPTOMS, LintSeverity, lint, list_severities
from mendq.lint.template import NotATemplate, Template
from mendq.lint.values import DeployTarget
from mendq.notifications.text import to_markdown_text

# IDs of the rules for what could not be checked. cfn-lint shows I9500 only with `-c I`.
UNCHECKED_PLACE_RULE_ID = "I9500"
UNCHECKED_TEMPLATE_RULE_ID = "W9500"
_FIRST_RULE_NUMBER = 9501
_RULE_NUMBER_COUNT = 499
# Symptoms whose names give the number of an earlier symptom, with the text that gives theirs.
_NUMBERED_TEXT_BY_SYMPTOM = {"filter_deletes_messages": "filter_deletes_messages (2)"}
_MOST_MESSAGE_CHARACTERS = 1_000
_LETTER_BY_SEVERITY = {LintSeverity.ERROR: "E", LintSeverity.WARNING: "W", LintSeverity.NOTE: "I"}


class _RuleMessage(NamedTuple):
    """One message that a rule reports to cfn-lint."""

    rule_id: str
    # Keys from the top of the template, joined by dots.
    path: str
    text: str


def make_rule_id(symptom: str, severity: LintSeverity) -> str:
    """Return the ID of a symptom's rule: E (error), W (warning) or I (note), and a number.

    The number is computed from the symptom's name. cfn-lint shows I rules only with `-c I`.
    """
    numbered_text = _NUMBERED_TEXT_BY_SYMPTOM.get(symptom, symptom)
    rule_number = _FIRST_RULE_NUMBER + crc32(numbered_text.encode()) % _RULE_NUMBER_COUNT
    return f"{_LETTER_BY_SEVERITY[severity]}{rule_number}"


class _LintRule(CloudFormationLintRule):  # type: ignore[misc] # cfn-lint has no types
    """Base class of the rules. A rule reports the same findings as `mendq lint`.

    cfn-lint ignores this class itself, because it has no ID.
    """

    tags = ("mendq", "sqs")

    def match(self, cfn: Any) -> list[RuleMatch]:
        """Return the messages of this rule about a template."""
        return [
            RuleMatch(
                # cfn-lint can write the messages as SARIF.
                message.path.split("."),
                to_markdown_text(message.text, _MOST_MESSAGE_CHARACTERS),
            )
            for message in _check_template(cfn)
            if message.rule_id == self.id
        ]


@lru_cache(maxsize=1)
def _check_template(cfn_template: Any) -> tuple[_RuleMessage, ...]:
    """Return the messages of all rules about a template.

    The last result is cached, because cfn-lint runs each rule on the same template.
    """
    return tuple(_list_messages(json.dumps(cfn_template.template, default=str).encode()))


def _list_messages(template_bytes: bytes) -> Iterator[_RuleMessage]:
    """Check a template, and yield the messages of all rules about it."""
    try:
        template = read_template(template_bytes)
        # A message is one line. `Template` renders a remedy as one line of YAML.
        one_line_template = Template(
            template.root, expansion=template.expansion, nested=template.nested
        )
        lint_result = lint(one_line_template, "", DeployTarget())
    except NotATemplate as error:
        yield _RuleMessage(UNCHECKED_TEMPLATE_RULE_ID, "Resources", f"not judged at all: {error}")
        return
    for finding in lint_result.findings:
        remedy_text = f"; remedy: {'; '.join(finding.remedy)}" if finding.remedy else ""
        message_text = f"{finding.symptom}: {finding.because}{remedy_text}; see {finding.runbook}"
        yield _RuleMessage(
            make_rule_id(finding.symptom, finding.severity), finding.path, message_text
        )
    for unchecked_place in lint_result.not_judged:
        yield _RuleMessage(
            UNCHECKED_PLACE_RULE_ID, unchecked_place.path, f"not judged: {unchecked_place.because}"
        )


def _make_rule(symptom: Symptom, severity: LintSeverity) -> type[_LintRule]:
    """Make the class of the rule for one symptom and severity."""
    rule_id = make_rule_id(symptom.name, severity)
    class_attributes = {
        "id": rule_id,
        "shortdesc": symptom.name,
        "description": symptom.sentence,
        "source_url": symptom.aws_page,
    }
    return type(rule_id, (_LintRule,), class_attributes)


def _make_rules() -> Iterator[type[_LintRule]]:
    """Yield a rule class for each symptom, and for each severity that its findings can have."""
    for symptom in CHECKED_SYMPTOMS:
        for severity in list_severities(symptom):
            yield _make_rule(symptom, severity)


RULES = tuple(_make_rules())
# cfn-lint takes the classes in a module's namespace.
globals().update({rule.id: rule for rule in RULES})


class UncheckedPlaceRule(_LintRule):
    """The rule that reports places of a template that could not be checked."""

    id = UNCHECKED_PLACE_RULE_ID
    shortdesc = "not judged"
    description = "Mendq cannot say from the template how this is."


class UncheckedTemplateRule(_LintRule):
    """The rule that reports a template that could not be checked at all."""

    id = UNCHECKED_TEMPLATE_RULE_ID
    shortdesc = "not judged at all"
    description = "Mendq takes no template as large or as costly as this one."
