"""What SQS shows of the letters in a queue to whoever holds those that it has shown.

Of a FIFO group it shows none while one is in hand: the groups in hand are let go for that, each in
its turn, and received from their beginning.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from functions.aws.errors import looking
from functions.aws.groups_in_hand import GroupsInHand
from functions.aws.lease import Lease
from functions.aws.letters_look import letter_of
from functions.healing.companions import FIFO
from functions.healing.letters import Letter

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType

MOST_RECEIVED = 10


class LettersShown:
    """Whatever is shown is held by `lease` from then on. Raises FactsUnavailable or QueueRefusesUs.

    A receive waits `wait_seconds` for a first letter: SQS asks all of its servers then, so that an
    empty answer means that there is none.
    """

    def __init__(
        self,
        sqs: SQSClient,
        queue_url: str,
        lease: Lease,
        groups: GroupsInHand,
        *,
        wait_seconds: int,
    ) -> None:
        self._sqs, self._queue_url, self._lease = sqs, queue_url, lease
        self._groups, self._is_opening = groups, False
        self._wait_seconds = wait_seconds

    def more(self, most: int) -> list[Letter]:
        """What SQS shows by itself, and of a FIFO queue what it hides behind what is in hand.

        Empty where the queue shows no others.
        """
        if not self._is_opening:
            received = self._receive(most)
            self._is_opening = not received and self._hides_some()
            if not self._is_opening:
                return received
        while (ids := self._groups.next_to_open()) is not None:
            if in_hand := ids & self._lease.held:
                self._lease.release(*in_hand)
                if received := self._receive(MOST_RECEIVED):
                    return received
        self._is_opening = False
        return self._receive(most)

    def _hides_some(self) -> bool:
        if not (self._queue_url.endswith(FIFO) and self._groups):
            return False
        name: QueueAttributeNameType = "ApproximateNumberOfMessages"
        with looking(f"attributes of {self._queue_url}"):
            answer = self._sqs.get_queue_attributes(QueueUrl=self._queue_url, AttributeNames=[name])
        return int(answer["Attributes"][name]) > 0

    def _receive(self, most: int) -> list[Letter]:
        with looking(f"letters in {self._queue_url}"):
            messages = self._lease.receive(
                MaxNumberOfMessages=min(most, MOST_RECEIVED),
                WaitTimeSeconds=self._wait_seconds,
                MessageAttributeNames=["All"],
                MessageSystemAttributeNames=["All"],
            )
        return [letter_of(each) for each in messages]
