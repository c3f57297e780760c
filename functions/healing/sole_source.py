"""The one queue whose letters a dead-letter queue takes, as sending them back asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from functions.healing.mode import Mode


@dataclass(frozen=True)
class SoleSource:
    """`mode` None where it is not managed; `deletes_per_second` of the last hour.

    `soak_factor` is the account's `timing.soakFactor`, by which its letters are waited for.
    """

    queue_arn: str
    tags: Mapping[str, str]
    mode: Mode | None
    deletes_per_second: float
    soak_factor: float
