"""Two hundred dead letters: their cause is mended, most can be handled, twenty never can."""

from __future__ import annotations

import json

from functions.catalogue.dead_letters_waiting import DEAD_LETTERS_WAITING
from functions.catalogue.lease_expired import LEASE_EXPIRED
from functions.healing.lease_needs import MAX_PROCESSING_TAG
from functions.healing.paging import Severity
from functions.healing.redrive_step import HELD, RedriveDeadLetters
from functions.healing.states import State
from functions.healing.steps import SetVisibilityTimeout
from local_account.demo.redrive.act import LettersGoBack
from local_account.demo.redrive.hasty import Extensions
from local_account.demo.silent_traffic import Nobody
from local_account.demo.story import BadQueue, Story
from local_account.where import ACCOUNT, REGION

HEAL = {"mendq": "heal"}
SCOPE = f"arn:aws:sqs:{REGION}:{ACCOUNT}"
TWO_WEEKS = "1209600"

LETTERS = BadQueue(
    name="orders-dlq",
    why="the dead letters of orders; what waits there goes back once a person agrees",
    traffic=Nobody(),
    symptom=DEAD_LETTERS_WAITING,
    state=State.PROPOSED,
    attributes={"MessageRetentionPeriod": TWO_WEEKS},
    tags=HEAL,
    steps=(RedriveDeadLetters(HELD, f"{SCOPE}:orders"),),
    pages=Severity.INFO,
    then=(State.APPROVED, State.APPLIED, State.VERIFIED),
    begins_in_an_act=True,
    ends_in_an_act=True,
    is_silent=True,
)
ORDERS = BadQueue(
    name="orders",
    why="held for 1 s, worked on for 2; what is received twice and not deleted is dead",
    traffic=Extensions(),
    symptom=LEASE_EXPIRED,
    state=State.APPLIED,
    attributes={
        "VisibilityTimeout": "1",
        "RedrivePolicy": json.dumps(
            {"deadLetterTargetArn": f"{SCOPE}:{LETTERS.name}", "maxReceiveCount": 2}
        ),
    },
    tags={**HEAL, MAX_PROCESSING_TAG: "2"},
    steps=(SetVisibilityTimeout(1, 3),),
    then=(State.VERIFIED, State.WATCHING),
    begins_in_an_act=True,
    ends_in_an_act=True,
    outcome="healed",
)

REDRIVE = Story(queues=(LETTERS, ORDERS), acts=(LettersGoBack(source=ORDERS, letters=LETTERS),))
