"""The state of the KMS key that encrypts a queue's messages.

https://docs.aws.amazon.com/kms/latest/developerguide/key-state.html
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

# What `KeyState.state` says of a key that does not exist. KMS itself has no such state.
MISSING_KEY_STATE = "NotFound"
_DELETION_STATES = frozenset({"PendingDeletion", "PendingReplicaDeletion"})
# In these states no message can be encrypted or decrypted with the key.
_UNUSABLE_STATES = _DELETION_STATES | {
    "Disabled",
    "PendingImport",
    "Unavailable",
    MISSING_KEY_STATE,
}


@dataclass(frozen=True)
class KeyState:
    """The state of a KMS key.

    Attributes:
        state: The state in KMS's spelling, such as `Enabled`; empty if the key could not be read.
        deletion_at: When KMS deletes the key; None if no deletion is scheduled.
        seconds_left: Seconds until then, from the time at which the key was read.
        error: Why the key could not be read; empty if it could.
        is_silent: True if KMS did not answer at all.
    """

    state: str
    deletion_at: datetime | None = None
    seconds_left: float | None = None
    error: str = ""
    is_silent: bool = False

    @property
    def is_unusable(self) -> bool:
        """True if nobody can use the key now."""
        return self.state in _UNUSABLE_STATES

    def with_seconds_left(self, now: datetime) -> KeyState:
        """Return the state with the seconds until KMS deletes the key, if it will."""
        if self.state not in _DELETION_STATES or self.deletion_at is None:
            return self
        seconds_left = max(0.0, (self.deletion_at - now).total_seconds())
        return replace(self, seconds_left=seconds_left)
