"""Find out which symptoms CloudTrail can show on which queues, and why it cannot show others.

Failed SQS calls are CloudTrail data events. A trail logs only the data events that its event
selectors select. So a symptom is visible on a queue only if a trail logs the calls that show it.
One symptom, `mapping_refused`, shows in failed calls to Lambda. These are management events.
https://docs.aws.amazon.com/awscloudtrail/latest/userguide/filtering-data-events.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct, structs

from mendq.catalogue import CATALOGUE
from mendq.catalogue.consumers.mapping_refused import MAPPING_REFUSED
from mendq.catalogue.symptom import FailedCallPattern, Symptom
from mendq.catalogue.visibility.visibility_timeout_too_short import VISIBILITY_TIMEOUT_TOO_SHORT
from mendq.cli.account import Account
from mendq.cli.doctor.check import Check, Command, Status, run_checks
from mendq.cli.output import shorten_list
from mendq.model.names import DATA_EVENT_NAMES, PROBE_ROLE_PURPOSE, role_name
from mendq.model.partitions import partition_of
from mendq.probe.probe import PROBE_EVENT_NAME, PROBE_QUEUE_NAME

# The operators of a field selector. Each operator also exists with `Not` before its name.
_TEST_BY_OPERATOR: dict[str, Callable[[str, str], bool]] = {
    "Equals": str.__eq__,
    "StartsWith": str.startswith,
    "EndsWith": str.endswith,
}
# An advanced event selector as CloudTrail's GetEventSelectors returns it.
EventSelector = Mapping[str, Any]
# Names of SQS calls, by queue ARN.
CallNamesByQueueArn = Mapping[str, frozenset[str]]
# Stands for any queue that the selectors cover. Used if no queue is managed yet.
ANY_QUEUE = "any queue"
UNLOGGED_QUEUE_REASON = "no trail logs this queue's calls"
NO_MANAGEMENT_EVENTS_REASON = (
    "no trail logs management events that write: set trail.managementEvents, and deploy"
)
LATE_DELETES_REASON = (
    "a late delete on a standard queue answers 200, so no error shows it: the scan finds the race"
)
# The catalogue accepts the error codes of a late call on any call, but SQS returns them only for
# calls on a message that was received.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibility.html
CALLS_ON_RECEIVED_MESSAGES = frozenset(
    name for name in DATA_EVENT_NAMES if name.startswith(("DeleteMessage", "ChangeMessage"))
)
# Limits of CloudTrail that no selector changes.
CLOUDTRAIL_LIMITS = (
    "batch calls answer 200 and list what failed inside: those failures are in no errorCode",
    "whether CloudTrail logs the calls of Lambda's own pollers is not documented",
    "selectors that ask who calls are taken to let your callers in",
)
# Printed if the form of a symptom's CloudTrail records is only assumed.
UNCONFIRMED_RECORD_TEXT = (
    "no record of such a call by AWS is known here: `mendq drill --record DIR` gets them"
)


class Trail(Struct, frozen=True):
    """A CloudTrail trail and what it logs now."""

    name: str
    # Empty if the trail is switched off. None if AWS does not say, as for an organization's trail
    # in a member account.
    selectors: tuple[EventSelector, ...] | None
    # Bucket and key prefix, joined by a slash, below which the trail writes its files.
    files_root: str = ""
    # True if the trail logs management events that write, such as CreateEventSourceMapping.
    logs_changes: bool = False

    def is_logging(
        self, queue_arn: str, event_name: str, known_fields: Mapping[str, str] | None = None
    ) -> bool:
        """Return True if the trail logs that call on that queue.

        Args:
            known_fields: more fields of the event that selectors may ask for, such as the caller's
                ARN. A selector on a field that is not known counts as matching.
        """
        for selector in self.selectors or ():
            if _is_selected(selector, queue_arn, event_name, known_fields or {}):
                return True
        return False


def check_trails(account: Account, trails: list[Trail]) -> Iterator[Check]:
    """Yield a check for each trail, and a last one: does a trail log the probe's call?

    Each trail is appended to `trails`. A trail that cannot be read gets the status UNKNOWN, and the
    others are still checked. Raises ClientError if the trails cannot be listed.
    """
    answer = account.clients.cloudtrail.describe_trails(includeShadowTrails=True)
    for trail_description in answer["trailList"]:
        bucket_name = trail_description.get("S3BucketName")
        files_root = f"{bucket_name}/{trail_description.get('S3KeyPrefix', '')}"
        trails.append(Trail(trail_description["Name"], None, files_root.rstrip("/")))
        owner_account = trail_description["TrailARN"].split(":")[4]
        check_trail = partial(_check_trail, account, trail_description, trails)
        for check in run_checks(f"trail {trail_description['Name']}", check_trail):
            if check.status is Status.UNKNOWN and owner_account != account.settings.account:
                remedy = f"ask account {owner_account}, whose trail it is, what it selects"
                yield structs.replace(check, remedy=remedy)
            else:
                yield check
    yield _check_probe_is_logged(account, trails)


def _check_trail(account: Account, trail_description: Any, trails: list[Trail]) -> Iterator[Check]:
    """Yield a check that says whether the trail is logging.

    The last item of `trails` is this trail. Replace it by one with the trail's event selectors;
    there are none if the trail is not logging.
    """
    client = account.clients.cloudtrail
    trail_arn = trail_description["TrailARN"]
    selectors: list[Any] = []
    logs_changes = False
    is_logging = client.get_trail_status(Name=trail_arn).get("IsLogging")
    if is_logging:
        selectors_answer = client.get_event_selectors(TrailName=trail_arn)
        selectors.extend(selectors_answer.get("AdvancedEventSelectors", ()))
        logs_changes = _does_trail_log_changes(selectors_answer)
    trails[-1] = structs.replace(trails[-1], selectors=tuple(selectors), logs_changes=logs_changes)
    check_name = f"trail {trail_description['Name']}"
    if not is_logging:
        # StartLogging works only in the region in which the trail was made.
        region = trail_description.get("HomeRegion", account.region)
        remedy = Command.aws(region, "cloudtrail", "start-logging", "--name", trail_arn)
        yield Check(check_name, Status.WARN, "it is switched off", remedy)
        return
    sqs_selectors = [selector for selector in selectors if "AWS::SQS::Queue" in str(selector)]
    sentence = f"is logging, {len(sqs_selectors)} selector(s) of SQS data events"
    yield Check(check_name, Status.OK, sentence)


def _does_trail_log_changes(selectors_answer: Mapping[str, Any]) -> bool:
    """Return True if a trail with these selectors logs Lambda's management events that write.

    Args:
        selectors_answer: CloudTrail's answer to GetEventSelectors: basic event selectors, or
            advanced ones.
    """
    value_by_field = {
        "eventCategory": "Management",
        "readOnly": "false",
        "eventSource": "lambda.amazonaws.com",
    }
    for selector in selectors_answer.get("AdvancedEventSelectors") or ():
        field_selectors = selector.get("FieldSelectors", [])
        if all(
            is_field_match(field_selector, value_by_field.get(field_selector["Field"], ""))
            for field_selector in field_selectors
        ):
            return True
    return any(
        selector.get("IncludeManagementEvents", True)
        and selector.get("ReadWriteType") != "ReadOnly"
        for selector in selectors_answer.get("EventSelectors") or ()
    )


def _check_probe_is_logged(account: Account, trails: Sequence[Trail]) -> Check:
    """Return the check: does a trail log the failing call that the probe makes?

    The selectors are evaluated as CloudTrail does it, with the caller and type of the probe's call.
    """
    region = account.region
    partition = partition_of(region)
    account_id = account.settings.account
    queue_arn = f"arn:{partition}:sqs:{region}:{account_id}:{PROBE_QUEUE_NAME}"
    probe_role = role_name(PROBE_ROLE_PURPOSE, region)
    probe_session = account.outputs.get("ProbeFunction", "")
    role_session_arn_beginning = f"arn:{partition}:sts::{account_id}:assumed-role"
    known_fields = {
        "userIdentity.arn": f"{role_session_arn_beginning}/{probe_role}/{probe_session}",
        "readOnly": "false",
        "eventType": "AwsApiCall",
    }
    check_name = "probe's trail"
    logging_trails = [
        trail.name
        for trail in trails
        if trail.is_logging(queue_arn, PROBE_EVENT_NAME, known_fields)
    ]
    if logging_trails:
        return Check(
            check_name, Status.OK, f"{shorten_list(logging_trails)} logs the probe's queue"
        )
    unread_trails = list_unread_trails(trails)
    if unread_trails:
        sentence = f"{shorten_list(unread_trails)} cannot be read"
        return Check(check_name, Status.UNKNOWN, sentence, "the check `probe` says what comes")
    probe_call_text = f"{PROBE_EVENT_NAME} of {PROBE_QUEUE_NAME}"
    sentence = f"no trail that is logging selects {probe_call_text}: no probe is seen"
    remedy = f"have a trail log SQS data events of {queue_arn}, or deploy"
    return Check(check_name, Status.FAIL, sentence, remedy)


def check_trail_files(
    nightly_job_root: str, trails: Sequence[Trail], queue_arns: Sequence[str]
) -> Check:
    """Check that the nightly job reads every call that a trail logs of these queues.

    The job reads only the files below `nightly_job_root`, a bucket and key prefix. A trail that
    writes elsewhere is a fault only if it logs calls that no trail writes below `nightly_job_root`.
    UNKNOWN if calls are missing and some trails cannot be read. If no trail writes to this bucket
    at all, the result is only a warning, because AWS or a person may copy files into it.
    """
    check_name = "files of the trail"
    trails_read_by_job = [trail for trail in trails if trail.files_root == nightly_job_root]
    missed_calls_by_queue = _find_missing_calls(
        trails_read_by_job,
        {arn: select_logged_calls(trails, arn, DATA_EVENT_NAMES) for arn in queue_arns},
    )
    if trails_read_by_job and not missed_calls_by_queue:
        trail_names = shorten_list([trail.name for trail in trails_read_by_job])
        sentence = f"the nightly job reads {nightly_job_root}, where the files of {trail_names} lie"
        return Check(check_name, Status.OK, sentence)
    fault_clause_beginning = "the trails write to"
    if missed_calls_by_queue:
        queue_names = shorten_list([arn.rpartition(":")[2] for arn in missed_calls_by_queue])
        fault_clause_beginning = f"calls of {queue_names} are logged to"
    roots_not_read_by_job = shorten_list(
        _list_roots_not_read_by_job(trails, trails_read_by_job, missed_calls_by_queue)
    )
    fault = (
        f"the nightly job reads {nightly_job_root}, and {fault_clause_beginning} "
        f"{roots_not_read_by_job} alone"
    )
    remedy = "say in trail.bucket and trail.prefix where all of it lies, and deploy"
    if missed_calls_by_queue and list_unread_trails(trails_read_by_job):
        return Check(check_name, Status.UNKNOWN, f"{fault}, as far as trails can be read")
    bucket_name = nightly_job_root.partition("/")[0]
    if any(trail.files_root.partition("/")[0] == bucket_name for trail in trails):
        return Check(check_name, Status.FAIL, fault, remedy)
    sentence = f"{fault}: it counts what is copied, if anything"
    return Check(check_name, Status.WARN, sentence, remedy)


def _list_roots_not_read_by_job(
    trails: Sequence[Trail],
    trails_read_by_job: Sequence[Trail],
    missed_calls_by_queue: CallNamesByQueueArn,
) -> list[str]:
    """Return the roots, such as `BUCKET/PREFIX`, to which trails write the missed calls.

    If `trails_read_by_job` is empty, return the roots of all trails.
    """
    roots_not_read_by_job = set()
    for trail in trails:
        logs_missed_call = any(
            select_logged_calls([trail], queue_arn, missed_calls)
            for queue_arn, missed_calls in missed_calls_by_queue.items()
        )
        if not trails_read_by_job or logs_missed_call:
            roots_not_read_by_job.add(trail.files_root)
    return sorted(roots_not_read_by_job)


def list_unread_trails(trails: Sequence[Trail]) -> list[str]:
    """Return the names of the trails whose selectors could not be read."""
    return [trail.name for trail in trails if trail.selectors is None]


def select_logged_calls(
    trails: Sequence[Trail], queue_arn: str, event_names: Iterable[str]
) -> frozenset[str]:
    """Return the calls of `event_names` that at least one of the trails logs on that queue."""
    logged_calls = set()
    for event_name in event_names:
        if any(trail.is_logging(queue_arn, event_name) for trail in trails):
            logged_calls.add(event_name)
    return frozenset(logged_calls)


def _is_selected(
    selector: EventSelector, queue_arn: str, event_name: str, known_fields: Mapping[str, str]
) -> bool:
    """Return True if the selector selects that SQS call.

    A field that is not known, such as the caller or `readOnly`, counts as matching.
    """
    value_by_event_field = {
        "eventCategory": "Data",
        "resources.type": "AWS::SQS::Queue",
        "eventName": event_name,
        "eventSource": "sqs.amazonaws.com",
        **known_fields,
    }
    if queue_arn != ANY_QUEUE:
        value_by_event_field["resources.ARN"] = queue_arn
    field_selectors = selector.get("FieldSelectors", [])
    selected_fields = {field_selector["Field"] for field_selector in field_selectors}
    if not {"eventCategory", "resources.type"} <= selected_fields:
        return False
    for field_selector in field_selectors:
        field_name = field_selector["Field"]
        if field_name in value_by_event_field and not is_field_match(
            field_selector, value_by_event_field[field_name]
        ):
            return False
    return True


def is_field_match(field_selector: Mapping[str, Any], value: str) -> bool:
    """Return True if a field selector matches the value, as CloudTrail evaluates it.

    If there are positive operators, at least one must match. No negative operator (`Not...`) may
    match.
    """
    has_positive_operator = False
    has_positive_match = False
    for operator, is_operator_match in _TEST_BY_OPERATOR.items():
        for selector_value in field_selector.get(f"Not{operator}") or ():
            if is_operator_match(value, selector_value):
                return False
        for selector_value in field_selector.get(operator) or ():
            has_positive_operator = True
            if is_operator_match(value, selector_value):
                has_positive_match = True
    return has_positive_match or not has_positive_operator


class SymptomVisibility(Struct, frozen=True):
    """The queues, as ARNs, on which failed calls show one symptom fully, partly, or not at all.

    A queue on which failed calls cannot show the symptom, even if all are logged, is left out.
    """

    symptom: str
    visible: tuple[str, ...]
    # The reason by queue: some of the needed calls are not logged, or a trail cannot be read.
    partly: dict[str, str]
    # The reason by queue: no logged call can show the symptom.
    blind: dict[str, str]
    # True if failed calls can show the symptom.
    by_calls: bool
    # True if the hourly scan can find the symptom.
    by_the_scan: bool
    # True if the form in which AWS records the calls is only assumed so far.
    unconfirmed_on_aws: bool


def list_symptom_visibility(
    trails: Sequence[Trail], queue_arns: Sequence[str]
) -> Iterator[SymptomVisibility]:
    """Yield, for each symptom of the catalogue, on which of the queues failed calls show it.

    A symptom that only a template shows is left out.
    """
    for symptom in CATALOGUE:
        if symptom.is_of_template:
            continue
        fully_visible_queues = []
        reason_by_partly_visible_queue = {}
        reason_by_blind_queue = {}
        for queue_arn in queue_arns:
            if not _list_failed_call_patterns(symptom, queue_arn):
                continue
            reason, is_blind = find_visibility_gap(symptom, trails, queue_arn)
            if reason is None:
                fully_visible_queues.append(queue_arn)
            elif is_blind:
                reason_by_blind_queue[queue_arn] = reason
            else:
                reason_by_partly_visible_queue[queue_arn] = reason
        yield SymptomVisibility(
            symptom.name,
            tuple(fully_visible_queues),
            reason_by_partly_visible_queue,
            reason_by_blind_queue,
            by_calls=bool(symptom.seen_as),
            by_the_scan=symptom.detection is not None,
            unconfirmed_on_aws=symptom.is_unconfirmed,
        )


def count_unconfirmed_symptoms(symptom_visibilities: Sequence[SymptomVisibility]) -> str:
    """Return a sentence that counts the symptoms whose records are only assumed so far.

    Empty if there is no such symptom. The scan's findings do not depend on CloudTrail records.
    """
    unconfirmed_symptoms = [
        symptom_visibility
        for symptom_visibility in symptom_visibilities
        if symptom_visibility.unconfirmed_on_aws
    ]
    if not unconfirmed_symptoms:
        return ""
    symptom_count = len(symptom_visibilities)
    unconfirmed_count = len(unconfirmed_symptoms)
    found_by_scan_count = sum(
        symptom_visibility.by_the_scan for symptom_visibility in unconfirmed_symptoms
    )
    return (
        f"{unconfirmed_count} of {symptom_count} symptoms rely on CloudTrail records whose form "
        f"nobody has seen on AWS yet; the scan also finds {found_by_scan_count} of them. "
        f"The other {symptom_count - unconfirmed_count} do not rely on such "
        "records."
    )


def find_visibility_gap(
    symptom: Symptom, trails: Sequence[Trail], queue_arn: str
) -> tuple[str | None, bool]:
    """Return why failed calls do not fully show the symptom on that queue.

    The first value is the reason, or None if they fully show the symptom. The second value is True
    if no logged call can show the symptom.
    """
    if symptom is MAPPING_REFUSED:
        return _find_gap_of_management_events(trails)
    logged_calls = select_logged_calls(trails, queue_arn, DATA_EVENT_NAMES)
    needed_calls = list_needed_calls(symptom, queue_arn)
    missing_calls = sorted(needed_calls - logged_calls)
    unread_trails = list_unread_trails(trails)
    if missing_calls and unread_trails:
        return f"not known: {', '.join(unread_trails)} cannot be read", False
    if not logged_calls:
        return UNLOGGED_QUEUE_REASON, True
    if missing_calls:
        is_blind = not needed_calls & logged_calls
        return f"not logged: {', '.join(missing_calls)}", is_blind
    if symptom is VISIBILITY_TIMEOUT_TOO_SHORT and not queue_arn.endswith(".fifo"):
        return LATE_DELETES_REASON, False
    return None, False


def _find_gap_of_management_events(trails: Sequence[Trail]) -> tuple[str | None, bool]:
    """Return what `find_visibility_gap` returns, for a symptom that management events show."""
    if any(trail.logs_changes for trail in trails):
        return None, False
    unread_trails = list_unread_trails(trails)
    if unread_trails:
        return f"not known: {', '.join(unread_trails)} cannot be read", False
    return NO_MANAGEMENT_EVENTS_REASON, True


def list_needed_calls(symptom: Symptom, queue_arn: str) -> frozenset[str]:
    """Return the names of the SQS calls whose failures can show the symptom on that queue."""
    candidate_calls = frozenset(DATA_EVENT_NAMES)
    if symptom is VISIBILITY_TIMEOUT_TOO_SHORT:
        candidate_calls = CALLS_ON_RECEIVED_MESSAGES
    needed_calls = set[str]()
    for failed_call_pattern in _list_failed_call_patterns(symptom, queue_arn):
        needed_calls |= candidate_calls & (failed_call_pattern.event_names or candidate_calls)
    return frozenset(needed_calls)


def _list_failed_call_patterns(symptom: Symptom, queue_arn: str) -> list[FailedCallPattern]:
    """Return the kinds of failed call that show the symptom on that queue."""
    return [
        failed_call_pattern
        for failed_call_pattern in symptom.seen_as
        if queue_arn == ANY_QUEUE or failed_call_pattern.fits_queue(queue_arn)
    ]


def find_unlogged_calls(
    trails: Sequence[Trail], queue_arns: Sequence[str]
) -> dict[str, frozenset[str]]:
    """Return, by queue ARN, the calls that would show a symptom and that no trail logs.

    Queues without such calls are left out. The result is empty if a trail cannot be read, because
    that trail may log the calls.
    """
    if list_unread_trails(trails):
        return {}
    needed_calls_by_queue = {}
    for queue_arn in queue_arns:
        needed_calls = set[str]()
        for symptom in CATALOGUE:
            needed_calls |= list_needed_calls(symptom, queue_arn)
        needed_calls_by_queue[queue_arn] = frozenset(needed_calls)
    return _find_missing_calls(trails, needed_calls_by_queue)


def _find_missing_calls(
    trails: Sequence[Trail], needed_calls_by_queue: CallNamesByQueueArn
) -> dict[str, frozenset[str]]:
    """Return the needed calls that no trail logs. Queues without such calls are left out."""
    missing_calls_by_queue = {}
    for queue_arn, needed_calls in needed_calls_by_queue.items():
        missing_calls = needed_calls - select_logged_calls(trails, queue_arn, needed_calls)
        if missing_calls:
            missing_calls_by_queue[queue_arn] = missing_calls
    return missing_calls_by_queue


def list_unlogged_queues(trails: Sequence[Trail], queue_arns: Sequence[str]) -> list[str]:
    """Return the ARNs of the queues on which no trail logs any call.

    The result is empty if a trail cannot be read, because that trail may log calls.
    """
    if list_unread_trails(trails):
        return []
    return [
        queue_arn
        for queue_arn in queue_arns
        if not select_logged_calls(trails, queue_arn, DATA_EVENT_NAMES)
    ]
