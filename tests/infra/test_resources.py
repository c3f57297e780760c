"""What the stack's trail sees of a drill."""

from __future__ import annotations

import pytest

from mendq.cli.deploy.drill import make_queue_name
from mendq.cli.deploy.drill_queue import LATE_DELETE_EVENT_NAME
from mendq.cli.doctor.visibility import Trail, select_logged_calls
from tests.infra.synthesized import QUEUE_ARNS, template_of


@pytest.mark.parametrize("name", ["default", "named"])
def test_stacks_trail_logs_the_late_delete_of_a_drill_queue_and_of_no_other(name: str) -> None:
    """As the drill itself asks it; `named` logs other queues, and deletes alone of them."""
    given = template_of(name).only("AWS::CloudTrail::Trail")["AdvancedEventSelectors"]
    trail = Trail("mendq", tuple(given))
    drilled = make_queue_name()
    assert select_logged_calls([trail], f"{QUEUE_ARNS}{drilled}", [LATE_DELETE_EVENT_NAME]) == {
        LATE_DELETE_EVENT_NAME
    }
    assert not select_logged_calls([trail], f"{QUEUE_ARNS}x-{drilled}", [LATE_DELETE_EVENT_NAME])
