"""What has to hold of every template, and neither cfn-lint, cdk-nag nor CDK's own checks look at.

Each rule has the faults that prove that it bites.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.infra.template_rules import access, deliveries, limits
from tests.infra.template_rules.rule import Rule

RULES: Mapping[str, Rule] = {
    name.lower(): each
    for room in (access, deliveries, limits)
    for name, each in vars(room).items()
    if isinstance(each, Rule)
}
