"""Killed at any AWS call, before or after it, or its answer lost: a fix, a rollback and an approval
end the same. `make prove` strikes more scenes, and in pairs.
"""

from __future__ import annotations

import pytest

from tests.prove.fault_points import singly
from tests.prove.proof import Proving
from tests.prove.scenes import SCENES

STRUCK = {"heal, fixed", "rollback", "approve, and heal's write"}


@pytest.mark.parametrize("name", sorted(STRUCK))
def test_it_ends_the_same(name: str) -> None:
    proving = Proving()
    singly(proving, scenes=[each for each in SCENES if each.name == name])
    assert proving.figures["scenes"] == 1
    assert proving.failures == []
