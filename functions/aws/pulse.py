"""Makes the pulse: judges the last one, notes the next, makes its failing call, pages if it must.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
"""

from __future__ import annotations

from datetime import datetime

from botocore.exceptions import BotoCoreError, ClientError

from functions.aws.clients import Clients
from functions.aws.errors import PulseNotMade, code_of
from functions.aws.ledger_pages import LedgerPages
from functions.aws.pager import Pager
from functions.aws.pulse_record import PulseRecord
from functions.healing.error_codes import canonical
from functions.healing.paging import Severity
from functions.healing.pulse import Pulse, page_of_lost
from functions.settings import PulseSettings

# What SQS answers to a FIFO message without a deduplication id.
EXPECTED = "InvalidParameterValue"


def make_pulse(
    clients: Clients, settings: PulseSettings, scheduled_at: datetime, now: datetime
) -> Pulse:
    """The pulse that is on its way now.

    It is noted before the call, so that heal cannot see what nobody sent; a second delivery calls
    again and judges nothing. Raises LedgerUnavailable, LedgerUnreadable, PulseNotMade, PageNotSent.
    """
    record = PulseRecord(clients.dynamodb, settings.ledger_table)
    pulse = _noted(record, scheduled_at, now)
    try:
        _fail(clients, settings.pulse_queue_url)
    finally:
        if pulse.wants_a_page:
            _page(clients, settings, pulse, now)
            record.note_paged(pulse)
    return pulse


def _noted(record: PulseRecord, scheduled_at: datetime, now: datetime) -> Pulse:
    last = record.read()
    pulse = last.next_one(scheduled_at, now) if last else Pulse(scheduled_at, now)
    if pulse == last or record.note_sent(pulse):
        return pulse
    return record.read() or pulse


def _fail(clients: Clients, queue_url: str) -> None:
    """Anything but the expected refusal is a fault of ours that no later pulse would mend."""
    try:
        clients.sqs.send_message(QueueUrl=queue_url, MessageBody="pulse", MessageGroupId="pulse")
    except ClientError as error:
        if canonical(code_of(error)) == EXPECTED:
            return
        raise PulseNotMade(f"SQS refused the pulse in another way: {error}") from error
    except BotoCoreError as error:
        raise PulseNotMade(f"SQS could not be reached: {error}") from error
    raise PulseNotMade(
        "SQS took the pulse and has to refuse it: turn ContentBasedDeduplication off on its queue"
    )


def _page(clients: Clients, settings: PulseSettings, pulse: Pulse, now: datetime) -> None:
    pages = LedgerPages(clients.dynamodb, settings.ledger_table)
    pager = Pager(clients, pages, {Severity.URGENT: settings.urgent_topic_arn}, now)
    page = page_of_lost(pulse, settings.account, clients.region)
    pager.send_about_account("pulse", f"lost since {pulse.lost_since:%Y-%m-%dT%H:%M:%S}", page)
