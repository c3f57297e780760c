from __future__ import annotations

import pytest

from mendq.cli.deploy.drill_queue import VISIBILITY_SECONDS, drill_queue
from mendq.cli.exit_codes import Exit, Stopped
from mendq.model.limits import DRILL_TAG
from tests.cli.conftest import Operator

NAME = "orders.fifo"


def test_a_queue_that_is_there_is_neither_taken_nor_removed(operator: Operator) -> None:
    theirs = operator.aws.queue(NAME, tag=None, VisibilityTimeout=str(VISIBILITY_SECONDS))
    with (
        pytest.raises(Stopped, match="is there already") as stopped,
        drill_queue(operator.aws.clients.sqs, NAME, {"mendq": "heal"}),
    ):
        pytest.fail("the drill took a queue of somebody else")
    assert stopped.value.code is Exit.USAGE
    url = operator.aws.url(theirs)
    assert operator.aws.visibility(theirs) == VISIBILITY_SECONDS
    assert not operator.aws.clients.sqs.list_queue_tags(QueueUrl=url).get("Tags")


def test_its_own_queue_is_removed_however_the_drill_ends(operator: Operator) -> None:
    sqs = operator.aws.clients.sqs
    tags: dict[str, str] = {}

    def interrupted() -> None:
        with drill_queue(sqs, NAME, {"mendq": "heal"}) as made:
            tags.update(sqs.list_queue_tags(QueueUrl=made.url)["Tags"])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert tags == {"mendq": "heal", DRILL_TAG: "true"}
    assert "QueueUrls" not in sqs.list_queues()
