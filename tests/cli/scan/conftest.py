"""An operator's account to scan, in moto."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.cli.builders import Operator


@pytest.fixture
def operator(operator: Operator) -> Operator:
    """Moto cannot list move tasks."""
    answer: Any = (SimpleNamespace(status_code=200), {"Results": []})
    none: Any = lambda **_: answer  # noqa: E731
    operator.account.session.events.register("before-call.sqs.ListMessageMoveTasks", none)
    operator.aws.clients.sqs.meta.events.register("before-call.sqs.ListMessageMoveTasks", none)
    return operator
