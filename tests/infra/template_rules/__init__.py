"""Rules for every template that cfn-lint, cdk-nag and CDK do not check.

Each rule yields a sentence for each violation.
"""

from tests.infra.template_rules.access import check_resource_policies
from tests.infra.template_rules.deliveries import (
    check_claim_durations,
    check_failed_events_are_kept,
    check_visibility_timeouts,
)
from tests.infra.template_rules.limits import (
    check_alarms_can_fire,
    check_retained_resources,
)

RULES = (
    check_resource_policies,
    check_failed_events_are_kept,
    check_visibility_timeouts,
    check_claim_durations,
    check_alarms_can_fire,
    check_retained_resources,
)
