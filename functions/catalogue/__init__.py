"""THE place to add a symptom: one file, one line here, one runbook. The first match holds."""

from functions.catalogue.access_denied import ACCESS_DENIED
from functions.catalogue.caller_bug import CALLER_BUG
from functions.catalogue.consumer_failing import CONSUMER_FAILING
from functions.catalogue.consumer_stopped import CONSUMER_STOPPED
from functions.catalogue.consumer_throttled import CONSUMER_THROTTLED
from functions.catalogue.dead_letter_access_refused import DEAD_LETTER_ACCESS_REFUSED
from functions.catalogue.dead_letter_queue_missing import DEAD_LETTER_QUEUE_MISSING
from functions.catalogue.dead_letter_queue_of_another_type import DEAD_LETTER_QUEUE_OF_ANOTHER_TYPE
from functions.catalogue.dead_letters_arriving import DEAD_LETTERS_ARRIVING
from functions.catalogue.dead_letters_expire_first import DEAD_LETTERS_EXPIRE_FIRST
from functions.catalogue.dead_letters_waiting import DEAD_LETTERS_WAITING
from functions.catalogue.dedup_id_missing import DEDUP_ID_MISSING
from functions.catalogue.empty_receives import EMPTY_RECEIVES
from functions.catalogue.fifo_group_blocked import FIFO_GROUP_BLOCKED
from functions.catalogue.fifo_throttled import FIFO_THROTTLED
from functions.catalogue.in_flight_limit import IN_FLIGHT_LIMIT
from functions.catalogue.kms_denied import KMS_DENIED
from functions.catalogue.kms_key_unusable import KMS_KEY_UNUSABLE
from functions.catalogue.kms_throttled import KMS_THROTTLED
from functions.catalogue.lease_expired import LEASE_EXPIRED
from functions.catalogue.message_too_long import MESSAGE_TOO_LONG
from functions.catalogue.messages_about_to_expire import MESSAGES_ABOUT_TO_EXPIRE
from functions.catalogue.not_encrypted import NOT_ENCRYPTED
from functions.catalogue.queue_missing import QUEUE_MISSING
from functions.catalogue.redrive_cycle import REDRIVE_CYCLE
from functions.catalogue.sender_cannot_deliver import SENDER_CANNOT_DELIVER
from functions.catalogue.symptom import Symptom
from functions.catalogue.tls_not_enforced import TLS_NOT_ENFORCED
from functions.catalogue.too_few_receives import TOO_FEW_RECEIVES
from functions.healing.failed_call import FailedCall

# Before the canonical code of a call for which the catalogue has no symptom.
UNKNOWN = "unknown:"

CATALOGUE: tuple[Symptom, ...] = (
    LEASE_EXPIRED,
    MESSAGE_TOO_LONG,
    DEDUP_ID_MISSING,
    FIFO_THROTTLED,
    EMPTY_RECEIVES,
    KMS_THROTTLED,
    KMS_DENIED,
    KMS_KEY_UNUSABLE,
    ACCESS_DENIED,
    QUEUE_MISSING,
    IN_FLIGHT_LIMIT,
    CONSUMER_FAILING,
    CONSUMER_STOPPED,
    CONSUMER_THROTTLED,
    MESSAGES_ABOUT_TO_EXPIRE,
    FIFO_GROUP_BLOCKED,
    DEAD_LETTERS_EXPIRE_FIRST,
    DEAD_LETTER_QUEUE_MISSING,
    DEAD_LETTER_ACCESS_REFUSED,
    DEAD_LETTERS_ARRIVING,
    DEAD_LETTERS_WAITING,
    SENDER_CANNOT_DELIVER,
    DEAD_LETTER_QUEUE_OF_ANOTHER_TYPE,
    REDRIVE_CYCLE,
    TOO_FEW_RECEIVES,
    TLS_NOT_ENFORCED,
    NOT_ENCRYPTED,
    CALLER_BUG,
)


def match(failed_call: FailedCall) -> Symptom | None:
    """The symptom that a failed call points to; None where the catalogue has none."""
    return next((symptom for symptom in CATALOGUE if symptom.matches(failed_call)), None)


def symptom_of(failed_call: FailedCall) -> str:
    """The word for a failed call in every table: a symptom's name, or `unknown:` and its code."""
    symptom = match(failed_call)
    return symptom.name if symptom else f"{UNKNOWN}{failed_call.error_code}"
