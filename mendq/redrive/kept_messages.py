"""Keep only the beginning of long messages, so that a sample of them fits into memory.

Senders choose bodies and attributes, and SQS accepts messages of 1 MiB. Names, types and ids are
kept whole, because SQS limits them to short texts.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from msgspec import Struct
from msgspec.structs import replace

from mendq.redrive.messages import (
    LONGEST_MARK_CHARACTERS,
    QUARANTINE_MARK_NAME,
    REDRIVE_MARK_NAME,
    Message,
    MessageAttribute,
)

_MARK_NAMES = (REDRIVE_MARK_NAME, QUARANTINE_MARK_NAME)


class KeptLength(Struct, frozen=True):
    """How much of a message is kept.

    Attributes:
        body_characters: The most characters of the body.
        attribute_characters: The most characters of the trace header and of an attribute's value
            (bytes, if it is binary). Mendq's own marks are longer and are kept whole.
    """

    body_characters: int
    attribute_characters: int


class KeptMessage(Struct, frozen=True):
    """A message with only the beginning of a long body and of long attributes.

    Attributes:
        message: The message, with long parts cut.
        is_body_cut: True if `message` does not have the whole body.
        digest_by_cut_attribute_name: A digest of the whole value of each attribute that was cut.
            Two cut values are equal only if their digests are equal.
    """

    message: Message
    is_body_cut: bool = False
    digest_by_cut_attribute_name: Mapping[str, str] = {}

    @classmethod
    def keep(cls, message: Message, length: KeptLength) -> KeptMessage:
        """Return the message with long parts cut to `length`."""
        kept_body = message.body[: length.body_characters]
        kept_attributes = dict[str, MessageAttribute]()
        digest_by_cut_attribute_name = dict[str, str]()
        for name, attribute in message.attributes.items():
            most_characters = length.attribute_characters
            if name in _MARK_NAMES:
                most_characters = max(most_characters, LONGEST_MARK_CHARACTERS)
            if len(attribute.value) > most_characters:
                digest_by_cut_attribute_name[name] = sha256(attribute.value_bytes).hexdigest()
            kept_attributes[name] = replace(attribute, value=attribute.value[:most_characters])
        kept_message = replace(
            message,
            body=kept_body,
            attributes=kept_attributes,
            trace_header=message.trace_header[: length.attribute_characters],
        )
        return cls(
            kept_message,
            is_body_cut=len(kept_body) < len(message.body),
            digest_by_cut_attribute_name=digest_by_cut_attribute_name,
        )

    def list_cut_parts(self) -> list[str]:
        """Return the parts of the message that were cut, such as `body` and `attributes.type`."""
        cut_parts = ["body"] if self.is_body_cut else []
        cut_parts += [f"attributes.{name}" for name in self.digest_by_cut_attribute_name]
        return cut_parts
