"""What a receipt handle is worth, on either type of queue.

Standard: DeleteMessage answers 200 whatever became of the message; an old handle leaves it there.
ChangeMessageVisibility after the timeout, nobody having received it again, answers 200 as well
(recorded from the real SQS; that it then changes nothing is our reading). Once somebody else holds
the message the handle's own receive is over: MessageNotInflight, as the API reference words it.
FIFO: both fail as soon as the visibility timeout has passed. DeleteMessage's text is recorded.
"""

from __future__ import annotations

from dataclasses import dataclass

from local_account.sqs.refusal import Refusal, invalid_parameter

LONGEST_SECONDS = 43_200


@dataclass(frozen=True)
class Receipt:
    """What is known of one handle now."""

    handle: str
    is_fifo: bool
    message_exists: bool
    is_latest: bool
    is_in_flight: bool  # or would be, had it not been deleted
    received_seconds_ago: float = 0

    @property
    def holds(self) -> bool:
        """Whether the receive that gave this handle still hides the message."""
        return self.message_exists and self.is_latest and self.is_in_flight


UNKNOWN = Refusal("ReceiptHandleIsInvalid", "The input receipt handle is invalid.")


def delete_refusal(receipt: Receipt) -> Refusal | None:
    """Why DeleteMessage fails, or None where it answers 200."""
    if not receipt.is_fifo or (receipt.is_latest and receipt.is_in_flight):
        return None  # also for a message that this handle has deleted a moment ago
    return invalid_parameter(  # (recorded)
        receipt.handle, "ReceiptHandle", "The receipt handle has expired."
    )


def deletes(receipt: Receipt) -> bool:
    """Whether a DeleteMessage that answers 200 removes the message."""
    return receipt.message_exists and receipt.is_latest


def change_refusal(receipt: Receipt, seconds: int) -> Refusal | None:
    """Why ChangeMessageVisibility fails, or None where it answers 200."""
    if not 0 <= seconds <= LONGEST_SECONDS:
        return invalid_parameter(
            seconds, "VisibilityTimeout", f"Must be between 0 and {LONGEST_SECONDS}, if provided."
        )
    if not receipt.message_exists:
        return invalid_parameter(
            receipt.handle,
            "ReceiptHandle",
            "Message does not exist or is not available for visibility timeout change.",
        )
    if not receipt.holds:
        forgiven = not receipt.is_fifo and receipt.is_latest
        return None if forgiven else Refusal("MessageNotInflight", "The message is not in flight.")
    if receipt.received_seconds_ago + seconds > LONGEST_SECONDS:
        return invalid_parameter(
            seconds,
            "VisibilityTimeout",
            "Total VisibilityTimeout for the message is beyond the limit "
            f"[{LONGEST_SECONDS} seconds].",
        )
    return None
