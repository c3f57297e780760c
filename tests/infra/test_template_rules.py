"""Mendq's own template rules, on the templates of all example settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.infra.synthesized import SETTINGS, Template, template_of, templates_of_three
from tests.infra.template_rules import RULES


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_template_of_every_example_settings_keeps_each_template_rule(
    rule: Callable[[Template], Iterator[str]],
) -> None:
    for template in (*map(template_of, SETTINGS), *templates_of_three()):
        assert list(rule(template)) == []
