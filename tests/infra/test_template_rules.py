"""Our own rules, on every template that settings can give; and that each rule bites."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from tests.infra.synthesized import SETTINGS, THREE, Template, template_of, templates_of_three
from tests.infra.template_rules import RULES
from tests.infra.template_rules.rule import Resources

FAULTS = [
    pytest.param(name, fault, id=f"{name}: {title}")
    for name, rule in RULES.items()
    for title, fault in rule.faults.items()
]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("settings", SETTINGS)
def test_a_template_keeps_the_rule(settings: str, rule: str) -> None:
    assert list(RULES[rule].findings(template_of(settings))) == []


@pytest.mark.parametrize("rule", RULES)
def test_each_of_three_environments_keeps_the_rule(rule: str) -> None:
    found = templates_of_three()
    assert len(found) == len(THREE)
    for template in found:
        assert list(RULES[rule].findings(template)) == []


@pytest.mark.parametrize(("rule", "fault"), FAULTS)
def test_a_seeded_fault_is_found(rule: str, fault: Callable[[Resources], None]) -> None:
    raw = copy.deepcopy(template_of("named").raw)
    fault(raw["Resources"])
    assert list(RULES[rule].findings(Template(raw)))
