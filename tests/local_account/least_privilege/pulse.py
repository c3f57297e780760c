"""pulse: the second in a row that did not come round, so that people are told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from functions.aws.pulse_record import PulseRecord
from functions.healing.pulse import Pulse
from tests.local_account.least_privilege.cases import Ledgers
from tests.local_account.least_privilege.enforced import Enforced
from tests.local_account.least_privilege.proof import Proof


def _one_lost(here: Enforced) -> PulseRecord:
    Ledgers(here).wipe()  # of lost pulses people are told once a day
    record = PulseRecord(here.account.client("dynamodb"), here.outputs["LedgerTable"])
    at = datetime.now(UTC) - timedelta(hours=1)
    assert record.note_sent(Pulse(at, at, lost_in_a_row=1, lost_since=at))
    return record


def _beaten(here: Enforced, record: PulseRecord) -> str:
    answer = here.call("pulse", {"time": datetime.now(UTC).isoformat()})
    pulse = record.read()
    assert pulse is not None
    paged = ["people know"] if pulse.paged else []
    return ", ".join([answer.error or f"{pulse.lost_in_a_row} lost", *paged])


PROOF = Proof(
    handler="pulse",
    prepare=_one_lost,
    comes_of=_beaten,
    whole="2 lost, people know",
    without={
        "dynamodb:GetItem": "LedgerUnavailable",
        "dynamodb:PutItem": "LedgerUnavailable",
        "dynamodb:UpdateItem": "LedgerUnavailable",
        "kms:Decrypt": "PageNotSent",
        "kms:GenerateDataKey": "PageNotSent",
        "sns:Publish": "PageNotSent",
        "sqs:SendMessage": "PulseNotMade, people know",
    },
    elsewhere={},
)
