"""Three queues on which no call ever fails: a race, a crash, letters that expire first."""

from __future__ import annotations

import json

from functions.catalogue.consumer_failing import CONSUMER_FAILING
from functions.catalogue.dead_letters_expire_first import DEAD_LETTERS_EXPIRE_FIRST
from functions.catalogue.lease_expired import LEASE_EXPIRED
from functions.healing.lease_needs import MAX_PROCESSING_TAG
from functions.healing.paging import Severity
from functions.healing.states import State
from functions.healing.steps import SetMessageRetention, SetVisibilityTimeout
from local_account.demo.silent_traffic import Crashes, Nobody, Races
from local_account.demo.story import BadQueue, Story
from local_account.demo.sweep_acts import FoundWithoutAnError
from local_account.where import ACCOUNT, REGION

HEAL = {"mendq": "heal"}
FOUR_DAYS, TWO_WEEKS = 345_600, 1_209_600
SHORT_LEASE = {"VisibilityTimeout": "1"}


def _dead_letters_go_to(name: str) -> dict[str, str]:
    """After more receives than a demo has: what comes back stays in sight."""
    arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}"
    return {"RedrivePolicy": json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1000})}


LETTERS = BadQueue(
    name="dead-letters",
    why="keeps letters four days, as its sources do: what dies late is gone before anybody looks",
    traffic=Nobody(),
    symptom=DEAD_LETTERS_EXPIRE_FIRST,
    state=State.APPLIED,
    attributes={"MessageRetentionPeriod": f"{FOUR_DAYS}"},
    tags=HEAL,
    steps=(SetMessageRetention(FOUR_DAYS, TWO_WEEKS),),
    begins_in_an_act=True,
    ends_in_an_act=True,
    is_silent=True,
)
THUMBNAILS = BadQueue(
    name="thumbnails",
    why="held for 1 s, some worked on for 3: those are done again and again; SQS says 200",
    traffic=Races(works_seconds=3.0),
    symptom=LEASE_EXPIRED,
    state=State.APPLIED,
    attributes=SHORT_LEASE | _dead_letters_go_to(LETTERS.name),
    tags={**HEAL, MAX_PROCESSING_TAG: "4"},
    steps=(SetVisibilityTimeout(1, 6),),
    begins_in_an_act=True,
    ends_in_an_act=True,
    is_silent=True,
)
INVOICES = BadQueue(
    name="invoices",
    why="its consumer crashes on every message: a longer lease would only slow the retries",
    traffic=Crashes(),
    symptom=CONSUMER_FAILING,
    state=State.ESCALATED,
    attributes=SHORT_LEASE | _dead_letters_go_to(LETTERS.name),
    tags=HEAL,
    pages=Severity.URGENT,
    begins_in_an_act=True,
    ends_in_an_act=True,
    is_silent=True,
)

SWEEP = Story(
    queues=(LETTERS, THUMBNAILS, INVOICES),
    acts=(
        FoundWithoutAnError(
            counted=(THUMBNAILS, INVOICES),
            drains=THUMBNAILS,
            every=(LETTERS, THUMBNAILS, INVOICES),
        ),
    ),
)
