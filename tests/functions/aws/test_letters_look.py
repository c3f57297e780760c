"""Whatever SQS hands out reads as a letter."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from functions.aws.message_mover import letter_of
from functions.healing.letters import Letter, MessageAttribute

WHOLE = {
    "MessageId": "m-1",
    "ReceiptHandle": "handle",
    "MD5OfBody": "0" * 32,
    "Body": "hello",
    "Attributes": {
        "SenderId": "AIDA",
        "SentTimestamp": "1763726400123",
        "ApproximateReceiveCount": "4",
        "ApproximateFirstReceiveTimestamp": "1763726400124",
        "MessageGroupId": "g",
        "MessageDeduplicationId": "d",
        "SequenceNumber": "18",
        "AWSTraceHeader": "Root=1-5759e988-bd862e3fe1be46a994272793",
        "DeadLetterQueueSourceArn": "arn:aws:sqs:us-east-1:123456789012:orders",
    },
    "MessageAttributes": {
        "weight": {"DataType": "Number.float", "StringValue": "1.5"},
        "picture": {"DataType": "Binary.png", "BinaryValue": b"\x00\xff"},
    },
}
TEXTS = st.text(max_size=20)


def test_everything_that_sqs_says_is_read() -> None:
    assert letter_of(WHOLE) == Letter(
        message_id="m-1",
        body="hello",
        sent_at=datetime(2025, 11, 21, 12, 0, 0, 123_000, tzinfo=UTC),
        receive_count=4,
        attributes={
            "weight": MessageAttribute("Number.float", "1.5"),
            "picture": MessageAttribute("Binary.png", b"\x00\xff"),
        },
        source_arn="arn:aws:sqs:us-east-1:123456789012:orders",
        group_id="g",
        deduplication_id="d",
        trace_header="Root=1-5759e988-bd862e3fe1be46a994272793",
    )


def test_a_letter_that_somebody_sent_here_died_nowhere() -> None:
    letter = letter_of({"MessageId": "m-1", "Body": "hello"})
    assert letter.source_arn is None
    assert letter.group_id == ""
    assert dict(letter.attributes) == {}


def test_one_that_does_not_say_when_it_was_sent_is_older_than_anything() -> None:
    assert letter_of({}).sent_at < datetime(2000, 1, 1, tzinfo=UTC)


@given(
    st.dictionaries(
        st.sampled_from(sorted(WHOLE)),
        TEXTS
        | st.dictionaries(
            st.sampled_from([*WHOLE["Attributes"], "x"]),
            TEXTS,
        ),
    )
)
def test_no_times_and_counts_raise(message: dict[str, object]) -> None:
    attributes = message.get("Attributes")
    message["Attributes"] = attributes if isinstance(attributes, dict) else {}
    message.pop("MessageAttributes", None)
    letter = letter_of(message)
    assert letter.receive_count >= 1
    assert letter.sent_at.tzinfo is UTC
