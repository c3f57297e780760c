"""The catalogue: every symptom that Mendq knows, and the symptom that a failed call means.

A symptom is a fault of a queue. Each has its own file, in the folder of its family. The file
explains the fault, how the queue shows it, and what Mendq would change;
`mendq/catalogue/symptom.py` explains the fields of an entry. To add a symptom, write its file, its
import and its line here, and its runbook. CONTRIBUTING.md has the steps.
"""

from mendq.catalogue.access.access_denied import ACCESS_DENIED
from mendq.catalogue.access.credentials_invalid import CREDENTIALS_INVALID
from mendq.catalogue.access.policy_is_public import POLICY_IS_PUBLIC
from mendq.catalogue.access.producer_refused import PRODUCER_REFUSED
from mendq.catalogue.access.queue_missing import QUEUE_MISSING
from mendq.catalogue.access.tls_not_enforced import TLS_NOT_ENFORCED
from mendq.catalogue.configuration.alarm_missing import ALARM_MISSING
from mendq.catalogue.configuration.invalid_request import INVALID_REQUEST
from mendq.catalogue.configuration.tag_not_understood import TAG_NOT_UNDERSTOOD
from mendq.catalogue.consumers.backlog_grows import BACKLOG_GROWS
from mendq.catalogue.consumers.batch_failures_not_reported import BATCH_FAILURES_NOT_REPORTED
from mendq.catalogue.consumers.concurrency_too_small import CONCURRENCY_TOO_SMALL
from mendq.catalogue.consumers.consumer_crashes import CONSUMER_CRASHES
from mendq.catalogue.consumers.consumer_failing import CONSUMER_FAILING
from mendq.catalogue.consumers.consumer_stopped import CONSUMER_STOPPED
from mendq.catalogue.consumers.consumer_throttled import CONSUMER_THROTTLED
from mendq.catalogue.consumers.empty_receives import EMPTY_RECEIVES
from mendq.catalogue.consumers.filter_deletes_messages import FILTER_DELETES_MESSAGES
from mendq.catalogue.consumers.function_errors import FUNCTION_ERRORS
from mendq.catalogue.consumers.function_times_out import FUNCTION_TIMES_OUT
from mendq.catalogue.consumers.in_flight_limit import IN_FLIGHT_LIMIT
from mendq.catalogue.consumers.mapping_refused import MAPPING_REFUSED
from mendq.catalogue.consumers.mapping_wastes_receives import MAPPING_WASTES_RECEIVES
from mendq.catalogue.dlq.dlq_messages_arriving import DLQ_MESSAGES_ARRIVING
from mendq.catalogue.dlq.dlq_messages_waiting import DLQ_MESSAGES_WAITING
from mendq.catalogue.dlq.dlq_missing import DLQ_MISSING
from mendq.catalogue.dlq.dlq_retention_too_short import DLQ_RETENTION_TOO_SHORT
from mendq.catalogue.dlq.dlq_source_not_allowed import DLQ_SOURCE_NOT_ALLOWED
from mendq.catalogue.dlq.dlq_source_unconfirmed import DLQ_SOURCE_UNCONFIRMED
from mendq.catalogue.dlq.dlq_type_mismatch import DLQ_TYPE_MISMATCH
from mendq.catalogue.dlq.error_queue_grows import ERROR_QUEUE_GROWS
from mendq.catalogue.dlq.max_receive_count_too_low import MAX_RECEIVE_COUNT_TOO_LOW
from mendq.catalogue.dlq.redrive_cycle import REDRIVE_CYCLE
from mendq.catalogue.dlq.redrive_loop import REDRIVE_LOOP
from mendq.catalogue.fifo.dedup_id_missing import DEDUP_ID_MISSING
from mendq.catalogue.fifo.dedup_interval_outlasted import DEDUP_INTERVAL_OUTLASTED
from mendq.catalogue.fifo.fifo_group_blocked import FIFO_GROUP_BLOCKED
from mendq.catalogue.fifo.fifo_throttled import FIFO_THROTTLED
from mendq.catalogue.fifo.noisy_message_groups import NOISY_MESSAGE_GROUPS
from mendq.catalogue.keys.kms_denied import KMS_DENIED
from mendq.catalogue.keys.kms_key_unusable import KMS_KEY_UNUSABLE
from mendq.catalogue.keys.kms_throttled import KMS_THROTTLED
from mendq.catalogue.keys.not_encrypted import NOT_ENCRYPTED
from mendq.catalogue.keys.service_cannot_use_key import SERVICE_CANNOT_USE_KEY
from mendq.catalogue.messages.message_too_long import MESSAGE_TOO_LONG
from mendq.catalogue.messages.messages_about_to_expire import MESSAGES_ABOUT_TO_EXPIRE
from mendq.catalogue.messages.messages_expire import MESSAGES_EXPIRE
from mendq.catalogue.symptom import Symptom
from mendq.catalogue.visibility.batch_outlasts_timeout import BATCH_OUTLASTS_TIMEOUT
from mendq.catalogue.visibility.heartbeat_ends_early import HEARTBEAT_ENDS_EARLY
from mendq.catalogue.visibility.timeout_not_in_force import TIMEOUT_NOT_IN_FORCE
from mendq.catalogue.visibility.visibility_timeout_default import VISIBILITY_TIMEOUT_DEFAULT
from mendq.catalogue.visibility.visibility_timeout_too_long import VISIBILITY_TIMEOUT_TOO_LONG
from mendq.catalogue.visibility.visibility_timeout_too_short import VISIBILITY_TIMEOUT_TOO_SHORT
from mendq.model.failed_call import FailedCall
from mendq.model.tags import TAGS_OF_EVERY_QUEUE, QueueTag

# Prefix of the name under which calls are counted if the catalogue has no symptom for them. The
# canonical error code follows it.
UNKNOWN_PREFIX = "unknown:"

# If several symptoms match a failed call, the first one in this order counts.
CATALOGUE: tuple[Symptom, ...] = (
    VISIBILITY_TIMEOUT_TOO_SHORT,
    MESSAGE_TOO_LONG,
    DEDUP_ID_MISSING,
    FIFO_THROTTLED,
    EMPTY_RECEIVES,
    KMS_THROTTLED,
    KMS_DENIED,
    KMS_KEY_UNUSABLE,
    ACCESS_DENIED,
    CREDENTIALS_INVALID,
    QUEUE_MISSING,
    MAPPING_REFUSED,
    IN_FLIGHT_LIMIT,
    FUNCTION_TIMES_OUT,
    REDRIVE_LOOP,
    FUNCTION_ERRORS,
    CONSUMER_FAILING,
    CONSUMER_STOPPED,
    CONSUMER_THROTTLED,
    NOISY_MESSAGE_GROUPS,
    MESSAGES_EXPIRE,
    MESSAGES_ABOUT_TO_EXPIRE,
    FIFO_GROUP_BLOCKED,
    HEARTBEAT_ENDS_EARLY,
    VISIBILITY_TIMEOUT_TOO_LONG,
    CONSUMER_CRASHES,
    BACKLOG_GROWS,
    VISIBILITY_TIMEOUT_DEFAULT,
    DLQ_RETENTION_TOO_SHORT,
    DLQ_MISSING,
    DLQ_SOURCE_NOT_ALLOWED,
    DLQ_MESSAGES_ARRIVING,
    DLQ_MESSAGES_WAITING,
    ERROR_QUEUE_GROWS,
    SERVICE_CANNOT_USE_KEY,
    PRODUCER_REFUSED,
    DLQ_TYPE_MISMATCH,
    DLQ_SOURCE_UNCONFIRMED,
    REDRIVE_CYCLE,
    MAX_RECEIVE_COUNT_TOO_LOW,
    FILTER_DELETES_MESSAGES,
    CONCURRENCY_TOO_SMALL,
    BATCH_FAILURES_NOT_REPORTED,
    BATCH_OUTLASTS_TIMEOUT,
    DEDUP_INTERVAL_OUTLASTED,
    POLICY_IS_PUBLIC,
    MAPPING_WASTES_RECEIVES,
    TLS_NOT_ENFORCED,
    NOT_ENCRYPTED,
    ALARM_MISSING,
    TIMEOUT_NOT_IN_FORCE,
    TAG_NOT_UNDERSTOOD,
    INVALID_REQUEST,
)
SYMPTOM_BY_NAME = {symptom.name: symptom for symptom in CATALOGUE}


def _group_symptoms_by_error_code() -> dict[str, list[Symptom]]:
    """Return the symptoms that each canonical error code may mean, in the catalogue's order."""
    symptoms_by_code: dict[str, list[Symptom]] = {}
    for symptom in CATALOGUE:
        # Several patterns of a symptom may have the same code; the symptom is listed once.
        error_codes = dict.fromkeys(pattern.error_code for pattern in symptom.seen_as)
        for error_code in error_codes:
            symptoms_by_code.setdefault(error_code, []).append(symptom)
    return symptoms_by_code


_SYMPTOMS_BY_ERROR_CODE = _group_symptoms_by_error_code()


def find_symptom_of(failed_call: FailedCall) -> Symptom | None:
    """Return the symptom that a failed call means, or None if the catalogue has none for it."""
    for symptom in _SYMPTOMS_BY_ERROR_CODE.get(failed_call.error_code, ()):
        if symptom.matches(failed_call):
            return symptom
    return None


def name_symptom_of(failed_call: FailedCall) -> str:
    """Return the name under which tables count a failed call.

    That is the symptom's name, or `unknown:` and the canonical error code if no symptom matches.
    """
    symptom = find_symptom_of(failed_call)
    return symptom.name if symptom else f"{UNKNOWN_PREFIX}{failed_call.error_code}"


def list_known_tags() -> dict[str, QueueTag]:
    """Return every queue tag that Mendq reads, by key.

    These are `TAGS_OF_EVERY_QUEUE` and the tags that the symptoms declare.
    """
    tag_by_key = {tag.key: tag for tag in TAGS_OF_EVERY_QUEUE}
    for symptom in CATALOGUE:
        tag_by_key.update({tag.key: tag for tag in symptom.tags})
    return tag_by_key
