"""probe: the second in a row that did not come round, so that people are told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mendq.probe.probe import Probe
from mendq.probe.send import ProbeRecord
from tests.local_account.least_privilege.cases import CaseStores
from tests.local_account.least_privilege.enforced import Enforced
from tests.local_account.least_privilege.proof import Proof


def _one_lost(here: Enforced) -> ProbeRecord:
    CaseStores(here).wipe()  # of lost probes people are told once a day
    record = ProbeRecord(here.account.client("dynamodb"), here.outputs["CaseTable"])
    at = datetime.now(UTC) - timedelta(hours=1)
    assert record.note_sent(Probe(at, at, lost_in_a_row=1, lost_since=at))
    return record


def _beaten(here: Enforced, record: ProbeRecord) -> str:
    answer = here.call("probe", {"time": datetime.now(UTC).isoformat()})
    probe = record.read()
    assert probe is not None
    notified = ["people know"] if probe.notified else []
    return ", ".join([answer.error or f"{probe.lost_in_a_row} lost", *notified])


PROOF = Proof(
    handler="probe",
    prepare=_one_lost,
    comes_of=_beaten,
    whole="2 lost, people know",
    without={
        "dynamodb:GetItem": "CaseStoreUnavailable",
        "dynamodb:PutItem": "CaseStoreUnavailable",
        "dynamodb:UpdateItem": "CaseStoreUnavailable",
        "kms:Decrypt": "NotificationNotSent",
        "kms:GenerateDataKey": "NotificationNotSent",
        "sns:Publish": "NotificationNotSent",
        "sqs:SendMessage": "ProbeNotSent, people know",
    },
    elsewhere={},
)
