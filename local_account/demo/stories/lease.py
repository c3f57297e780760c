"""One symptom on three queues: mended, observed, refused."""

from __future__ import annotations

from functions.catalogue.lease_expired import LEASE_EXPIRED
from functions.healing.lease_needs import MAX_PROCESSING_TAG
from functions.healing.paging import Severity
from functions.healing.states import State
from functions.healing.steps import SetVisibilityTimeout
from local_account.demo.story import BadQueue, Story
from local_account.demo.traffic import LateDeletes

LATE = LateDeletes(works_seconds=3.2)
SHORT_LEASE = {"VisibilityTimeout": "2"}

INVOICES = BadQueue(
    name="invoices.fifo",
    why="lease too short; may be healed, its tag says that a message takes up to 4 s",
    traffic=LATE,
    symptom=LEASE_EXPIRED,
    state=State.APPLIED,
    attributes=SHORT_LEASE,
    tags={"mendq": "heal", MAX_PROCESSING_TAG: "4"},
    steps=(SetVisibilityTimeout(2, 6),),
)
MAILS = BadQueue(
    name="mails.fifo",
    why="lease too short; may only be observed",
    traffic=LATE,
    symptom=LEASE_EXPIRED,
    state=State.OBSERVED,
    attributes=SHORT_LEASE,
    tags={"mendq": "observe"},
    steps=(SetVisibilityTimeout(2, 3),),
)
EXPORTS = BadQueue(
    name="exports.fifo",
    why="lease too short; may be healed, but its tag asks for more than the ceiling",
    traffic=LATE,
    symptom=LEASE_EXPIRED,
    state=State.REFUSED,
    attributes=SHORT_LEASE,
    tags={"mendq": "heal", MAX_PROCESSING_TAG: "1200"},
    pages=Severity.INFO,
)

LEASE = Story((INVOICES, MAILS, EXPORTS))
