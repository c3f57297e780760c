"""The stack's CloudTrail trail logs the calls of a drill."""

from __future__ import annotations

import pytest

from mendq.cli.deploy.drill import make_queue_name
from mendq.cli.deploy.drill_queue import LATE_DELETE_EVENT_NAME
from mendq.cli.doctor.visibility import Trail, select_logged_calls
from tests.infra.synthesized import QUEUE_ARNS, template_of


@pytest.mark.parametrize("name", ["default", "named"])
def test_stacks_trail_logs_the_late_delete_of_a_drill_queue_and_of_no_other(name: str) -> None:
    """The settings `named` log only the deletes of other queues."""
    selectors = template_of(name).only("AWS::CloudTrail::Trail")["AdvancedEventSelectors"]
    trail = Trail("mendq", tuple(selectors))
    drill_queue = make_queue_name()
    assert select_logged_calls([trail], f"{QUEUE_ARNS}{drill_queue}", [LATE_DELETE_EVENT_NAME]) == {
        LATE_DELETE_EVENT_NAME
    }
    assert not select_logged_calls(
        [trail], f"{QUEUE_ARNS}x-{drill_queue}", [LATE_DELETE_EVENT_NAME]
    )
