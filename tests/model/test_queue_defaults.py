"""What SQS's own values are, in its own account of a new queue."""

from __future__ import annotations

from mendq.catalogue.examples import queue
from mendq.model.facts import Facts
from mendq.model.queue import DEFAULTS, number_in
from tests.heal.conftest import moto_account


def test_a_new_queue_has_them() -> None:
    with moto_account() as account:
        made = account.attributes(account.queue("plain", tag=None))
    announced = {name: int(made[name]) for name in DEFAULTS if name in made}
    assert announced == {name: DEFAULTS[name] for name in announced}
    assert len(announced) >= 5


def test_what_is_said_goes_before_them() -> None:
    assert number_in({}, "VisibilityTimeout") == 30
    assert number_in({"VisibilityTimeout": "0"}, "VisibilityTimeout") == 0
    assert Facts("arn", {}, {}).maximum_message_bytes == 1_048_576
    assert queue().retention_seconds == 345_600
