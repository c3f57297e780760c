"""Where every letter of the story is in the end: none is lost, and nobody is charged twice."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from functions.healing.redrive_course import Course
from local_account.demo.redrive.orders import Order, Payments

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

MOST = 10
HIDDEN_SECONDS = 20


@dataclass(frozen=True)
class Conserved:
    """Orders by what became of them, by their ids."""

    letters: frozenset[str]
    poison: frozenset[str]
    handled: frozenset[str]
    quarantined: frozenset[str]
    dead: frozenset[str]
    not_charged_once: frozenset[str]

    @property
    def lost(self) -> frozenset[str]:
        return self.letters - self.handled - self.quarantined - self.dead

    def faults(self) -> list[str]:
        """Every way in which it is not as the story claims."""
        good = self.letters - self.poison
        claims = {
            "lost": self.lost,
            "left in the dead-letter queue": self.dead,
            "good and not handled": good - self.handled,
            "poison and not in quarantine": self.poison - self.quarantined,
            "handled and in quarantine": self.handled & self.quarantined,
            "not charged exactly once": self.not_charged_once,
        }
        return [
            f"{len(ids)} letters {what}: {', '.join(sorted(ids)[:3])}"
            for what, ids in claims.items()
            if ids
        ]

    def document(self, course: Course) -> dict[str, int]:
        """For machines; `went_back` counts those twice that a move task took along twice."""
        return {
            "letters": len(self.letters),
            "processed": len(self.handled),
            "quarantined": len(self.quarantined),
            "left": len(self.dead),
            "lost": len(self.lost),
            "went_back": course.moved,
            "came_back": course.returned,
        }


def conserved(
    letters: Iterable[Order],
    handled: Iterable[str],
    payments: Payments,
    *,
    quarantined: Iterable[str],
    dead: Iterable[str],
) -> Conserved:
    letters = tuple(letters)
    poison = frozenset(each["order_id"] for each in letters if each["address"] is None)
    ids = frozenset(each["order_id"] for each in letters)
    return Conserved(
        letters=ids,
        poison=poison,
        handled=ids & frozenset(handled),
        quarantined=frozenset(quarantined),
        dead=frozenset(dead),
        not_charged_once=frozenset(
            each for each in ids if payments.charged[each] != (each not in poison)
        ),
    )


def order_ids_in(sqs: SQSClient, queue_url: str) -> list[str]:
    """Of every message that can be received; all of them are visible again."""
    found: dict[str, str] = {}
    while messages := sqs.receive_message(
        QueueUrl=queue_url, MaxNumberOfMessages=MOST, VisibilityTimeout=HIDDEN_SECONDS
    ).get("Messages", []):
        found |= {each["ReceiptHandle"]: json.loads(each["Body"])["order_id"] for each in messages}
    for handle in found:
        sqs.change_message_visibility(QueueUrl=queue_url, ReceiptHandle=handle, VisibilityTimeout=0)
    return list(found.values())
