"""The key of a seal: a digest (HMAC) that proves that Mendq marked a message.

Mendq marks messages that it sends back or puts into a quarantine. Anyone who may send there can
write such a mark, so a mark counts only with its seal, which needs the key.
`mendq/cases/seal_keys.py` stores the keys.
"""

from __future__ import annotations

import hmac
from datetime import datetime
from hashlib import sha256

from msgspec import Struct

# The number of hexadecimal digits of a seal.
SEAL_DIGITS = 32


class SealKey(Struct, frozen=True):
    """The secret key of one queue's seals.

    Versions of Mendq before the table of seal keys stored their keys in the case store, where more
    people may read. Such a former key still proves messages that were sent before the present key
    was made, and no later ones: whoever read the former key can seal none any more.

    Attributes:
        key: The key that makes new seals. Empty if no version with the table made one yet.
        former_key: The key of earlier versions; empty if there was none.
        created_at: When `key` was made; None if there is none yet.
    """

    key: bytes
    former_key: bytes = b""
    created_at: datetime | None = None

    def make_seal(self, sealed_bytes: bytes) -> str:
        """Return the seal of these bytes, made with the present key."""
        return _make_seal(self.key, sealed_bytes)

    def is_seal_valid(self, seal: str, sealed_bytes: bytes, sent_at: datetime) -> bool:
        """Return True if the seal was made for these bytes with a key that counts.

        `sent_at` is the time at which SQS received the message, as SQS reports it.
        """
        if self.key and _is_same_seal(seal, _make_seal(self.key, sealed_bytes)):
            return True
        is_former_key_valid = self.created_at is None or sent_at < self.created_at
        return (
            bool(self.former_key)
            and is_former_key_valid
            and _is_same_seal(seal, _make_seal(self.former_key, sealed_bytes))
        )


def _make_seal(key: bytes, sealed_bytes: bytes) -> str:
    return hmac.new(key, sealed_bytes, sha256).hexdigest()[:SEAL_DIGITS]


def _is_same_seal(seal: str, expected_seal: str) -> bool:
    """Compare two seals in a time that does not tell where they differ."""
    return hmac.compare_digest(seal.encode(errors="replace"), expected_seal.encode())
