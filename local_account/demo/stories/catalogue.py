"""Seven queues, six symptoms: mended, proposed, refused, paged. All may be healed, by their tag."""

from __future__ import annotations

import json

from functions.catalogue.access_denied import ACCESS_DENIED
from functions.catalogue.dedup_id_missing import DEDUP_ID_MISSING
from functions.catalogue.fifo_throttled import FIFO_THROTTLED
from functions.catalogue.kms_throttled import KMS_THROTTLED
from functions.catalogue.message_too_long import MESSAGE_TOO_LONG
from functions.healing.paging import Severity
from functions.healing.states import State
from functions.healing.steps import (
    DeduplicateByContent,
    DeduplicateByGroup,
    LimitThroughputByGroup,
    SetKmsDataKeyReusePeriod,
    SetMaximumMessageSize,
)
from local_account.demo.stories.lease import EXPORTS, INVOICES
from local_account.demo.story import BadQueue, Story
from local_account.demo.traffic import Sends
from local_account.where import ACCOUNT, REGION

HEAL = {"mendq": "heal"}
IN_A_GROUP = {"MessageGroupId": "group-0"}
REFUNDS_SENDER = "refunds-sender"

PARCELS = BadQueue(
    name="parcels",
    why="asks KMS for a key each minute; KMS throttles that, here on demand",
    traffic=Sends(),
    symptom=KMS_THROTTLED,
    state=State.APPLIED,
    attributes={"KmsMasterKeyId": "alias/parcels", "KmsDataKeyReusePeriodSeconds": "60"},
    tags=HEAL,
    on_demand="KmsThrottled",
    steps=(SetKmsDataKeyReusePeriod(60, 300),),
)
SCANS = BadQueue(
    name="scans",
    why="takes 256 KiB; a sender has more, and SQS would take it",
    traffic=Sends(body_bytes=300_000),
    symptom=MESSAGE_TOO_LONG,
    state=State.PROPOSED,
    attributes={"MaximumMessageSize": "262144"},
    tags=HEAL,
    steps=(SetMaximumMessageSize(262_144, 1_048_576),),
    pages=Severity.INFO,
)
ORDERS = BadQueue(
    name="orders.fifo",
    why="its sender gives no deduplication id, and it may not make one",
    traffic=Sends(more=IN_A_GROUP),
    symptom=DEDUP_ID_MISSING,
    state=State.PROPOSED,
    tags=HEAL,
    steps=(DeduplicateByContent("false", "true"),),
    pages=Severity.INFO,
)
TICKETS = BadQueue(
    name="tickets.fifo",
    why="called more often than FIFO allows; SQS throttles it, here on demand",
    traffic=Sends(more=IN_A_GROUP, with_own_id=True),
    symptom=FIFO_THROTTLED,
    state=State.PROPOSED,
    tags=HEAL,
    on_demand="ThrottlingException",
    steps=(
        DeduplicateByGroup("queue", "messageGroup"),
        LimitThroughputByGroup("perQueue", "perMessageGroupId"),
    ),
    pages=Severity.INFO,
)
REFUNDS = BadQueue(
    name="refunds",
    why="its policy denies its sender",
    traffic=Sends(),
    symptom=ACCESS_DENIED,
    state=State.ESCALATED,
    attributes={
        "Policy": json.dumps(
            {
                "Version": "2012-10-17",
                "Statement": [
                    {
                        "Effect": "Deny",
                        "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:user/{REFUNDS_SENDER}"},
                        "Action": "sqs:SendMessage",
                        "Resource": f"arn:aws:sqs:{REGION}:{ACCOUNT}:refunds",
                    }
                ],
            }
        )
    },
    tags=HEAL,
    caller=REFUNDS_SENDER,
    pages=Severity.URGENT,
)

CATALOGUE_STORY = Story((INVOICES, PARCELS, SCANS, ORDERS, TICKETS, EXPORTS, REFUNDS))
