"""Group messages with large bodies in a process of its own, and print the memory that it used.

Run as `python -m tests.redrive.dlq_memory COUNT`. The output is the peak of the resident memory in
MiB.
"""

from __future__ import annotations

import json
import os
import sys

from mendq.redrive.message_groups import SampledMessage, group_sample
from tests.redrive.toy import NOW, message

# SQS returns at most ten messages in one answer.
_BATCH_SIZE = 10
_NAMES_PER_BODY = 62_000


def _make_body(number: int) -> str:
    """Return a body of about 1 MiB with names that no other body has."""
    return json.dumps({f"k{number}x{index}": 1 for index in range(_NAMES_PER_BODY)})


def _group_messages(count: int) -> None:
    """Group this many messages, and hold ten whole messages at a time, as `mendq dlq` does."""
    sample = list[SampledMessage]()
    for first in range(0, count, _BATCH_SIZE):
        batch = [message(f"m-{n}", body=_make_body(n)) for n in range(first, first + _BATCH_SIZE)]
        sample += [SampledMessage.create(whole, should_group_by_text=True) for whole in batch]
    if not group_sample(sample, NOW):
        raise SystemExit("no group")


def main() -> None:
    """Group the messages in a fork, because an exec counts the memory of its caller too."""
    process_id = os.fork()
    if not process_id:
        _group_messages(int(sys.argv[1]))
        os._exit(0)
    _, status, usage = os.wait4(process_id, 0)
    # macOS counts bytes, and Linux KiB.
    unit_bytes = 1 if sys.platform == "darwin" else 1_024
    sys.stdout.write(f"{usage.ru_maxrss * unit_bytes // 1_048_576}\n")
    sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
