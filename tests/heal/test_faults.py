"""Killed at an AWS call, before or after it, or its answer lost: a fix, a rollback and an approval
end the same. `make prove` strikes every call of more scenes, and in pairs.
"""

from __future__ import annotations

from tests.prove.fault_points import singly
from tests.prove.proof import Proving
from tests.prove.scenes import SCENES

STRUCK = {"heal, fixed", "rollback", "approve, and heal's write"}


def test_they_end_the_same() -> None:
    proving = Proving()
    singly(proving, share=1 / 8, scenes=[each for each in SCENES if each.name in STRUCK])
    assert proving.figures["scenes"] == len(STRUCK)
    assert proving.failures == []
