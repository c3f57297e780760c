"""What a scan makes of DLQ messages that SQS's move tasks send back again and again."""

from __future__ import annotations

import pytest

from local_account.process import LocalAccount
from mendq.model.queue import RedrivePolicy
from tests.local_account.queues import Queue, eventually, new_queue
from tests.local_account.slow_consumers import scan_queues

pytestmark = [pytest.mark.account, pytest.mark.long]
AN_HOUR = 61
BETWEEN_ROUNDS = 20  # minutes
UNTIL_MEASURED = 5  # minutes
BAD_MESSAGES = 4
GOOD_MESSAGES = 5


def fail_until_moved(source: Queue, dlq: Queue) -> None:
    """Give back each message until all of them are in the DLQ."""

    def receive_and_give_back() -> bool:
        for message in source.receive_some():
            source.change(message["ReceiptHandle"], 0)
        return dlq.count() == BAD_MESSAGES

    eventually(receive_and_give_back)


def finish_good_messages(source: Queue) -> None:
    for _ in range(GOOD_MESSAGES):
        source.send("good")
        source.delete(source.receive())


def move_back(dlq: Queue) -> None:
    """Let SQS move all messages of the DLQ to their source."""
    dlq.sqs.start_message_move_task(SourceArn=dlq.arn)
    eventually(
        lambda: (
            dlq.sqs.list_message_move_tasks(SourceArn=dlq.arn)["Results"][0]["Status"]
            == "COMPLETED"
        )
    )


@pytest.mark.parametrize(
    ("rounds", "is_loop"), [pytest.param(3, True, id="loop"), pytest.param(2, False, id="twice")]
)
def test_scan_names_messages_that_move_tasks_send_back_three_times_on_their_source(
    account: LocalAccount, rounds: int, is_loop: bool
) -> None:
    dlq = new_queue(account)
    policy = RedrivePolicy(dlq.arn, 2).text
    source = new_queue(account, tags={"mendq": "observe"}, RedrivePolicy=policy)

    def put_back(minutes: int) -> None:
        for queue in (source, dlq):
            account.put_back(queue.arn, minutes=minutes)

    try:
        put_back(AN_HOUR)
        for _ in range(BAD_MESSAGES):
            source.send("bad")
        fail_until_moved(source, dlq)
        for _ in range(rounds):
            put_back(BETWEEN_ROUNDS)
            finish_good_messages(source)
            move_back(dlq)
            fail_until_moved(source, dlq)
        put_back(UNTIL_MEASURED)
        findings = scan_queues(account, source, dlq)
        assert ((source.arn, "redrive_loop") in findings) is is_loop
        if is_loop:
            because = findings[source.arn, "redrive_loop"]["because"]
            assert "SQS's move tasks sent DLQ messages back 3 times" in because
            assert "consumers deleted 15" in because
    finally:
        for queue in (source, dlq):
            queue.sqs.delete_queue(QueueUrl=queue.url)
