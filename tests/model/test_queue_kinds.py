from __future__ import annotations

import pytest

from mendq.catalogue import examples
from mendq.model.queue import not_on_fifo, on_fifo


@pytest.mark.parametrize("arn", [None, "", examples.STANDARD_ARN, f"{examples.STANDARD_ARN}-fifo"])
def test_nothing_else_is_a_fifo_queue(arn: str | None) -> None:
    assert not on_fifo(arn)
    assert not_on_fifo(arn)


def test_a_fifo_queue_says_so_in_its_name() -> None:
    assert on_fifo(examples.QUEUE_ARN)
    assert not not_on_fifo(examples.QUEUE_ARN)
