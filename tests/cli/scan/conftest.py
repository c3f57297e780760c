"""The operator of the tests of `mendq scan`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.cli.builders import Operator


@pytest.fixture
def operator(operator: Operator) -> Operator:
    """An operator whose account has no message move task. moto cannot list them."""
    answer: Any = (SimpleNamespace(status_code=200), {"Results": []})
    none: Any = lambda **_: answer  # noqa: E731
    operator.account.session.events.register("before-call.sqs.ListMessageMoveTasks", none)
    operator.aws.clients.sqs.meta.events.register("before-call.sqs.ListMessageMoveTasks", none)
    return operator
