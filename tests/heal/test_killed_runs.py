"""A run is killed before or after an AWS call, or loses the call's answer.

These tests strike some calls of three scenes. `make prove` strikes every call of more scenes.
"""

from __future__ import annotations

from tests.prove.fault_points import singly
from tests.prove.proof import Proving
from tests.prove.scenes import SCENES

STRUCK = {"heal, fixed", "rollback", "approve, and heal's write"}


def test_fix_rollback_and_approval_end_the_same_after_a_kill_or_lost_answer_at_an_aws_call() -> (
    None
):
    proving = Proving()
    singly(proving, share=1 / 8, scenes=[scene for scene in SCENES if scene.name in STRUCK])
    assert proving.figures["scenes"] == len(STRUCK)
    assert proving.failures == []
