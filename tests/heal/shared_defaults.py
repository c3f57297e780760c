"""Queues that share a wrong setting, from the scan that finds them to their fixes."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from mendq.catalogue.dlq.dlq_retention_too_short import DLQ_RETENTION_TOO_SHORT
from mendq.follow_up.follow_up import follow_up
from mendq.heal.resume import continue_case
from mendq.model.case import Case
from mendq.model.state import State
from tests.account.account import Account
from tests.heal.operators import OWNERS, Heal, make_context, make_owner_run
from tests.scan.scanner import Scanner, make_short_retention_dlq, start_next_hour

SYMPTOM = DLQ_RETENTION_TOO_SHORT.name
WRONG = "86400"
RIGHT = "1209600"
# All queues are empty, so the first name is the queue that is fixed first.
NAMES = ("a", "b", "c", "d", "e")


def make_sharing_dlqs(scanner: Scanner, count: int = 4, tag: str | None = "propose") -> list[str]:
    """Make DLQs that keep messages for one day, each with a source that keeps them for longer."""
    return [make_short_retention_dlq(scanner, name, tag) for name in NAMES[:count]]


def scan_and_heal(scanner: Scanner) -> None:
    """Run the next hour's scan, and let heal handle what it found."""
    start_next_hour(scanner.account)
    scanner.scan([DLQ_RETENTION_TOO_SHORT])
    for result in scanner.heal():
        assert result.error_by_message_id == {}


def propose_shared_default(scanner: Scanner, count: int = 4) -> list[str]:
    """Make DLQs for which heal proposes one shared default. Heal answers approvals from then on."""
    dlq_arns = make_sharing_dlqs(scanner, count)
    scan_and_heal(scanner)
    Heal(scanner.account)
    events = scanner.account.clients.functions.meta.events

    def continue_requested_case(params: dict[str, Any], **_: Any) -> tuple[Any, dict[str, Any]]:
        request = json.loads(params["body"])
        continue_case(request, make_owner_run(request["symptom"], scanner.account))
        return SimpleNamespace(status_code=202), {"StatusCode": 202}

    # A handler's return value is the answer to the call, which the stubs' types do not allow.
    handler = cast("Callable[..., None]", continue_requested_case)
    events.register_first("before-call.lambda.Invoke", handler)
    return dlq_arns


def read_retentions(account: Account, dlq_arns: list[str]) -> list[str]:
    """Return the retention of each DLQ."""
    return [account.attributes(dlq_arn)["MessageRetentionPeriod"] for dlq_arn in dlq_arns]


def load_case(account: Account, queue_arn: str) -> Case:
    """Return the newest case of a queue."""
    case = account.run().case_store.look(queue_arn, SYMPTOM, ()).case
    assert case is not None
    return case


def list_case_states(account: Account, queue_arns: list[str]) -> list[str]:
    """Return the state of each queue's newest case."""
    return [str(load_case(account, queue_arn).state) for queue_arn in queue_arns]


def follow_up_cases(account: Account, **pause: float) -> None:
    """Run follow_up after a pause. Heal continues the cases that it names at once."""
    account.later(**pause)
    assert follow_up(make_context(account), OWNERS, lambda: 60).errors == {}


def wait_until_first_is_verified(account: Account, queue_arn: str) -> None:
    """Run follow_up until the queue's fix is verified, without time for the others to follow."""
    follow_up_cases(account, hours=8)
    assert load_case(account, queue_arn).state in (State.VERIFIED, State.WATCHING)
