"""What has to hold of every template, and neither cfn-lint, cdk-nag nor CDK's own checks look at.

One rule a file, each with the faults that prove that it bites.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.infra.template_rules import (
    alarms_can_fire,
    arrows_are_granted,
    bands_are_one_sided,
    batches_have_a_window,
    claims_end_in_time,
    clocks_can_be_read,
    names_are_known_before,
    nobody_else_may,
    nothing_is_lost,
    nothing_waits_for_itself,
    patterns_fit,
    selectors_are_of_one_kind,
    visibilities_cover_their_readers,
    what_we_know_is_retained,
)
from tests.infra.template_rules.rule import Rule

RULES: Mapping[str, Rule] = {
    each.__name__.rpartition(".")[2]: each.RULE
    for each in (
        alarms_can_fire,
        arrows_are_granted,
        bands_are_one_sided,
        batches_have_a_window,
        claims_end_in_time,
        clocks_can_be_read,
        visibilities_cover_their_readers,
        names_are_known_before,
        nobody_else_may,
        nothing_is_lost,
        nothing_waits_for_itself,
        patterns_fit,
        selectors_are_of_one_kind,
        what_we_know_is_retained,
    )
}
