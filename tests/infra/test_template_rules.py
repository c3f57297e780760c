"""Our own rules, on every template that settings can give; and that each rule bites."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from tests.infra.synthesized import SETTINGS, Template, template_of, templates_of_three
from tests.infra.template_rules import RULES
from tests.infra.template_rules.rule import Resources

FAULTS = [
    pytest.param(name, fault, id=f"{name}: {title}")
    for name, rule in RULES.items()
    for title, fault in rule.faults.items()
]


@pytest.mark.parametrize("rule", RULES)
def test_every_template_keeps_the_rule(rule: str) -> None:
    for template in (*map(template_of, SETTINGS), *templates_of_three()):
        assert list(RULES[rule].findings(template)) == []


@pytest.mark.parametrize(("rule", "fault"), FAULTS)
def test_a_seeded_fault_is_found(rule: str, fault: Callable[[Resources], None]) -> None:
    raw = copy.deepcopy(template_of("named").raw)
    fault(raw["Resources"])
    assert list(RULES[rule].findings(Template(raw)))
