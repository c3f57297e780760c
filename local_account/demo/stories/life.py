"""Five cases: one helps and holds, one does not, one is approved, one undone, one overruled."""

from __future__ import annotations

from functions.catalogue.fifo_throttled import FIFO_THROTTLED
from functions.catalogue.kms_throttled import KMS_THROTTLED
from functions.catalogue.lease_expired import LEASE_EXPIRED
from functions.healing.lease_needs import MAX_PROCESSING_TAG
from functions.healing.paging import Severity
from functions.healing.states import State
from functions.healing.steps import (
    DeduplicateByGroup,
    LimitThroughputByGroup,
    SetKmsDataKeyReusePeriod,
    SetVisibilityTimeout,
)
from local_account.demo.acts import Approved, DoesNotHelp, RolledBack, SeenToHold
from local_account.demo.story import BadQueue, Story
from local_account.demo.traffic import LateDeletes, Sends

HEAL = {"mendq": "heal"}
SHORT_LEASE = {"VisibilityTimeout": "2"}
HELD = (State.VERIFIED, State.WATCHING, State.CLOSED)
KEY_EACH_MINUTE = {"KmsMasterKeyId": "alias/orders", "KmsDataKeyReusePeriodSeconds": "60"}
KEY_EACH_5_MINUTES = (SetKmsDataKeyReusePeriod(60, 300),)

INVOICES = BadQueue(
    name="invoices.fifo",
    why="lease too short; its tag says that a message takes up to 4 s: true, and it helps",
    # Two at most hold a message from before the change, and two late deletes are no evidence.
    traffic=LateDeletes(works_seconds=3.2, workers=2, goes_on=True),
    symptom=LEASE_EXPIRED,
    state=State.APPLIED,
    attributes=SHORT_LEASE,
    tags={**HEAL, MAX_PROCESSING_TAG: "4"},
    steps=(SetVisibilityTimeout(2, 6),),
    then=HELD,
    ends_in_an_act=True,
    outcome="healed",
)
REPORTS = BadQueue(
    name="reports.fifo",
    why="lease too short; its tag says that a message takes up to 2 s: it takes more than 3",
    traffic=LateDeletes(works_seconds=3.4, workers=2),
    symptom=LEASE_EXPIRED,
    state=State.APPLIED,
    attributes=SHORT_LEASE,
    tags={**HEAL, MAX_PROCESSING_TAG: "2"},
    steps=(SetVisibilityTimeout(2, 3),),
    pages=Severity.URGENT,
    then=(State.INEFFECTIVE, State.ESCALATED),
    ends_in_an_act=True,
)
TICKETS = BadQueue(
    name="tickets.fifo",
    why="SQS throttles it, here on demand; what would help is a person's to approve",
    traffic=Sends(more={"MessageGroupId": "group-0"}, with_own_id=True, is_read=True),
    symptom=FIFO_THROTTLED,
    state=State.PROPOSED,
    attributes={"DeduplicationScope": "queue", "FifoThroughputLimit": "perQueue"},
    tags=HEAL,
    on_demand="ThrottlingException",
    steps=(
        DeduplicateByGroup("queue", "messageGroup"),
        LimitThroughputByGroup("perQueue", "perMessageGroupId"),
    ),
    pages=Severity.INFO,
    then=(State.APPROVED, State.APPLIED, *HELD),
    ends_in_an_act=True,
    outcome="approved",
)
LETTERS = BadQueue(
    name="letters",
    why="KMS throttles it, here on demand; a person takes the change back",
    traffic=Sends(is_read=True),
    symptom=KMS_THROTTLED,
    state=State.APPLIED,
    attributes=KEY_EACH_MINUTE,
    tags=HEAL,
    on_demand="KmsThrottled",
    steps=KEY_EACH_5_MINUTES,
    then=(State.ROLLED_BACK,),
    begins_in_an_act=True,
    ends_in_an_act=True,
)
PARCELS = BadQueue(
    name="parcels",
    why="the same, but a person has set a value meanwhile: it is kept, and told",
    traffic=Sends(is_read=True),
    symptom=KMS_THROTTLED,
    state=State.APPLIED,
    attributes=KEY_EACH_MINUTE,
    tags=HEAL,
    on_demand="KmsThrottled",
    steps=KEY_EACH_5_MINUTES,
    pages=Severity.INFO,
    then=(State.CONTESTED,),
    begins_in_an_act=True,
    ends_in_an_act=True,
    a_person_sets={"KmsDataKeyReusePeriodSeconds": "900"},
)

LIFE = Story(
    queues=(INVOICES, REPORTS, TICKETS, LETTERS, PARCELS),
    acts=(
        DoesNotHelp(REPORTS),
        Approved(TICKETS),
        RolledBack(taken_back=LETTERS, kept=PARCELS),
        SeenToHold(INVOICES, others=(TICKETS,), overruled=(PARCELS,)),
    ),
)
