"""What has to hold of every template, and neither cfn-lint, cdk-nag nor CDK's own checks look at.

Each rule yields a sentence for whatever breaks it.
"""

from tests.infra.template_rules.access import nobody_else_may
from tests.infra.template_rules.deliveries import (
    claims_end_in_time,
    nothing_is_lost,
    visibilities_cover_their_readers,
)
from tests.infra.template_rules.limits import (
    alarms_can_fire,
    what_we_know_is_retained,
)

RULES = (
    nobody_else_may,
    nothing_is_lost,
    visibilities_cover_their_readers,
    claims_end_in_time,
    alarms_can_fire,
    what_we_know_is_retained,
)
