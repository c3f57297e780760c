"""Write the subject and the text of each kind of notification.

The kinds are: a case, a mass symptom, a flood of calls, held back notifications, and mail that SES
refused. The line that asks people to act comes first, then possible causes, then the rest.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from shlex import quote

from msgspec import Struct

from mendq.model.case import Case
from mendq.model.facts import Facts
from mendq.model.policy import QueueChange
from mendq.model.queue import parse_queue_arn
from mendq.model.state import State
from mendq.model.timeline import TimelinePoint
from mendq.notifications.announcements import NOTIFICATIONS_PER_HOUR
from mendq.notifications.change_lines import (
    describe_change,
    describe_shared_default,
    describe_template_values,
    describe_undo,
)
from mendq.notifications.configuration import Baseline
from mendq.notifications.links import break_links
from mendq.notifications.next_steps import describe_reason, list_next_step_lines
from mendq.notifications.queue_lines import (
    compare_with_baselines,
    describe_facts,
    describe_failed_calls,
    describe_last_change,
    draw_time_bars,
    format_timeline,
)
from mendq.notifications.sent import (
    MOST_NOTIFICATION_BYTES,
    MOST_SUBJECT_CHARACTERS,
    NotificationText,
)
from mendq.notifications.text import (
    Section,
    command_or_note,
    format_count,
    format_utc_time,
    format_value,
    limit_lines,
    make_body,
    to_plain_text,
)

# The most characters of the first line, which a locked phone shows.
MOST_FIRST_LINE_CHARACTERS = 122
# The most characters of a symptom's name; no symptom of the catalogue is longer.
_MOST_SYMPTOM_NAME_CHARACTERS = 28
_SYMPTOM_NAME_ACRONYMS = frozenset({"dlq", "kms", "fifo", "id"})
# The most lines of advice after the change.
_MOST_LATER_ADVICE_LINES = 5
# A notification about callers (a flood, held back notifications) names at most this many.
MOST_NAMED_CALLERS = 50
# The most lines of advice before the change.
_MOST_FIRST_ADVICE_LINES = 4
# The most characters of the reason. The longest reasons are those of a DLQ for a FIFO queue, with
# what a person must know at their end.
_MOST_REASON_CHARACTERS = 2_000

# The request to the reader by state: in full, and a short one if the queue's name is long.
_READER_REQUESTS_BY_STATE: dict[State, tuple[str, str]] = {
    State.PROPOSED: ("Mendq proposes a change: approve it or decline it.", "Approve?"),
    State.APPROVED: ("It was approved and is held up: please look at it.", "Look at it"),
    State.INEFFECTIVE: ("Mendq's next step is held up: please look at it.", "Look at it"),
    State.EXPIRED: ("You approved it, and it was not done: please look at it.", "Look at it"),
    State.REFUSED: ("Mendq changed nothing: please look at it.", "Look at it"),
    State.ESCALATED: ("Mendq cannot fix this: please act.", "Please act"),
    State.ROLLED_BACK: ("Mendq took its change back, it did not help: please act.", "Please act"),
    State.OVERRIDDEN: ("Two values for one setting: please choose one.", "Choose one"),
}

# The states of a case that people may be notified about.
NOTIFIED_STATES = frozenset(_READER_REQUESTS_BY_STATE)


class CaseDetails(Struct, frozen=True):
    """Content of a case's notification, besides the case itself.

    `refusal_command` and printable lines of advice are shown unchanged. So the code that makes them
    must quote the texts of other parties.

    Args:
        sentence: The symptom's sentence.
        facts: The queue's facts now. They have no attributes if the queue was deleted.
        last_change: The last change that CloudTrail has; None if it has no change; a text with the
            reason if CloudTrail could not be asked.
        refusal_command: The command that the refusal itself names. If it is empty,
            `choose_next_step` chooses a command by the case's code or state.
        baselines: Configurations with which a scan found the queue healthy, newest first.
        advice_before_change: Lines about things to do before the change.
        advice_after_change: Lines about things to do after the change.
        always_shown_attributes: Names of attributes to show even if they are not set.
        symptom_sections: Further sections, which the symptom adds.
        aws_health: Lines about open events of AWS Health. They come just after the first line.
        timeline: The case's timeline.
        named_time_spans: Names with seconds: the time that consumers need, and the time that they
            have.
    """

    sentence: str
    facts: Facts
    last_change: QueueChange | str | None
    refusal_command: str
    baselines: tuple[Baseline, ...] = ()
    advice_before_change: Iterable[str] = ()
    advice_after_change: Iterable[str] = ()
    always_shown_attributes: Iterable[str] = ()
    symptom_sections: Iterable[Section] = ()
    aws_health: Iterable[str] = ()
    timeline: Sequence[TimelinePoint] = ()
    named_time_spans: Sequence[tuple[str, float]] = ()


def describe_case(case: Case, details: CaseDetails) -> NotificationText:
    """Return the notification about a case.

    Raises:
        ValueError: The case's state is not in NOTIFIED_STATES.
    """
    if case.state not in NOTIFIED_STATES:
        raise ValueError(f"a case that is {case.state} is never paged: {case.case_id}")
    facts = details.facts
    attributes = facts.attributes
    advice_before_change = limit_lines(
        (_clean_advice(line) for line in details.advice_before_change), _MOST_FIRST_ADVICE_LINES
    )
    advice_after_change = limit_lines(
        (_clean_advice(line) for line in details.advice_after_change), _MOST_LATER_ADVICE_LINES
    )
    time_bar_lines = tuple("  ".join(line) for line in draw_time_bars(details.named_time_spans))
    sections = (
        Section("FIRST", advice_before_change, can_be_cut=False),
        Section("CHANGE", describe_change(case, attributes), can_be_cut=False),
        Section("THE SAME ON", describe_shared_default(case), can_be_cut=False),
        Section("NEXT", list_next_step_lines(case, details.refusal_command), can_be_cut=False),
        Section("UNDO", describe_undo(case, attributes), can_be_cut=False),
        Section(
            "SINCE IT WORKED", tuple(compare_with_baselines(details.baselines, facts, case.at))
        ),
        Section("CHANGED LAST BY", describe_last_change(details.last_change)),
        Section("EVIDENCE", describe_failed_calls(case.evidence, facts.event_names)),
        Section("CASE SO FAR (UTC)", _draw_timeline(details.timeline)),
        Section("CONSUMERS NEED, AND HAVE", time_bar_lines),
        Section(
            "QUEUE NOW", describe_facts(case.steps, facts, tuple(details.always_shown_attributes))
        ),
        *details.symptom_sections,
        *describe_template_values(case, facts),
        Section("BEYOND THAT", advice_after_change),
    )
    queue = parse_queue_arn(case.queue_arn)
    account_and_region_text = format_account_and_region(queue.account, queue.region)
    symptom_text = symptom_name_in_words(case.symptom)
    queue_text = _name_queues(case)
    opening_lines = (
        make_first_line(f"{queue_text}: {symptom_text}.", *_READER_REQUESTS_BY_STATE[case.state]),
        *details.aws_health,
        f"What: {to_plain_text(details.sentence, 300)}",
        f"Why: {to_plain_text(describe_reason(case), _MOST_REASON_CHARACTERS)}",
    )
    subject = make_subject(
        f"Mendq {case.state.replace('_', ' ')}: {symptom_text} on",
        queue_text,
        account_and_region_text,
    )
    return _make_notification_text(subject, opening_lines, *sections)


def _name_queues(case: Case) -> str:
    """Return the queue's name. If the case asks for other queues too, add their number."""
    queue_name = parse_queue_arn(case.queue_arn).name
    shared_default = case.shared_default
    if shared_default is None or case.state is not State.PROPOSED:
        return queue_name
    return f"{queue_name} and {len(shared_default.queue_arns) - 1} more"


def _draw_timeline(points: Sequence[TimelinePoint]) -> tuple[str, ...]:
    """Return the lines of a timeline; empty for up to two points, which other lines show."""
    if len(points) <= 2:
        return ()
    return tuple("  ".join(line) for line in format_timeline(points))


def _make_notification_text(
    subject: str, opening_lines: Sequence[str], *sections: Section
) -> NotificationText:
    """Return a notification with this subject and these lines and sections.

    Sections without lines are left out.
    """
    filled_sections = [section for section in sections if section.lines]
    return NotificationText(
        subject, make_body(opening_lines, filled_sections, MOST_NOTIFICATION_BYTES)
    )


def symptom_name_in_words(symptom: str) -> str:
    """Return a symptom's name in words, such as `DLQ missing` for `dlq_missing`."""
    words = (
        word.upper() if word in _SYMPTOM_NAME_ACRONYMS else word for word in symptom.split("_")
    )
    return to_plain_text(" ".join(words), _MOST_SYMPTOM_NAME_CHARACTERS)


def make_first_line(fact_sentence: str, *reader_requests: str) -> str:
    """Return the first line of a notification: the fact, and a request to the reader.

    This is the first of `reader_requests` that fits into the line, or the last one if no request
    fits. A locked phone shows only this line.
    """
    fitting_reader_requests = [
        reader_request
        for reader_request in reader_requests
        if len(fact_sentence) + 1 + len(reader_request) <= MOST_FIRST_LINE_CHARACTERS
    ]
    reader_request = fitting_reader_requests[0] if fitting_reader_requests else reader_requests[-1]
    return f"{fact_sentence} {reader_request}"[:MOST_FIRST_LINE_CHARACTERS]


def make_subject(subject_beginning: str, name: str, account_and_region_text: str = "") -> str:
    """Return a subject of at most MOST_SUBJECT_CHARACTERS.

    The form is `BEGINNING NAME in PLACE`, without `in PLACE` if `account_and_region_text` is empty.
    If `name` is too long, its middle is left out, because long names differ at their ends.
    """
    account_and_region_ending = f" in {account_and_region_text}" if account_and_region_text else ""
    most_name_characters = (
        MOST_SUBJECT_CHARACTERS - len(subject_beginning) - 1 - len(account_and_region_ending)
    )
    short_name = name
    kept_end_characters = (most_name_characters - 3) // 2
    kept_start_characters = most_name_characters - 3 - kept_end_characters
    while len(short_name) > most_name_characters:
        cut_name = f"{name[:kept_start_characters]}...{name[-kept_end_characters:]}"
        # The cut can make a link: of `aimailto:` it may leave `mailto:`.
        short_name = break_links(cut_name)
        kept_end_characters -= 1
    return f"{subject_beginning} {short_name}{account_and_region_ending}"


def format_account_and_region(account: str, region: str) -> str:
    """Return the account and the region as text, such as `123456789012 eu-west-1`."""
    return f"{to_plain_text(account, 12)} {to_plain_text(region, 32)}"


def _clean_advice(advice_line: str) -> str:
    """Return a line of advice, made safe by `to_plain_text` if it is not printable."""
    return (
        advice_line
        if command_or_note(advice_line) == advice_line
        else to_plain_text(advice_line, 300)
    )


# The most queues that a notification about a mass symptom names.
_MOST_NAMED_QUEUES = 10


class MassSymptom(Struct, frozen=True):
    """A symptom that many queues show at once.

    Args:
        name: The symptom's name.
        sentence: The symptom's sentence.
        runbook: The path of its runbook.
        advice: A sentence that says how to find the common cause.
        next_command: The command to type first; empty if there is no command.
        aws_health: Lines about open events of AWS Health.
        own_changes: Lines about changes by Mendq that may be the common cause.
    """

    name: str
    sentence: str
    runbook: str
    advice: str
    next_command: str = ""
    aws_health: Iterable[str] = ()
    own_changes: Iterable[str] = ()


def describe_mass_symptom(
    symptom: MassSymptom,
    queue_arns: Collection[str],
    managed_queue_count: int,
    now: datetime,
    account_and_region_text: str,
) -> NotificationText:
    """Return one notification about all queues that show a mass symptom.

    Args:
        symptom: The symptom.
        queue_arns: The queues, in the order in which they are named.
        managed_queue_count: The number of managed queues; 0 if they were not counted.
        now: The time of the notification.
        account_and_region_text: The account and region, from `format_account_and_region`.
    """
    symptom_text = symptom_name_in_words(symptom.name)
    queue_count_text = f"{len(queue_arns)}"
    if managed_queue_count:
        queue_count_text = f"{len(queue_arns)} of {managed_queue_count}"
    queue_names = (to_plain_text(queue_arn.rpartition(":")[2], 80) for queue_arn in queue_arns)
    opening_lines = (
        make_first_line(
            f"{queue_count_text} queues: {symptom_text}.",
            "One cause elsewhere is likely: please look.",
        ),
        *(to_plain_text(line, 600) for line in symptom.own_changes),
        *symptom.aws_health,
        f"What: {to_plain_text(symptom.sentence, 300)}",
        "Why: many queues at once have a cause that is not theirs. Mendq changes none of them now.",
    )
    next_step_lines = [to_plain_text(symptom.advice, 600)]
    if symptom.next_command:
        next_step_lines.append(command_or_note(symptom.next_command))
    next_step_lines += [
        f"runbook: {to_plain_text(symptom.runbook)}",
        f"seen {format_utc_time(now)} in {account_and_region_text}",
    ]
    queues_section = Section("QUEUES", limit_lines(queue_names, _MOST_NAMED_QUEUES))
    subject = make_subject(
        f"Mendq stopped: {symptom_text} on",
        f"{queue_count_text} queues in {account_and_region_text}",
    )
    return _make_notification_text(
        subject,
        opening_lines,
        queues_section,
        Section("NEXT", tuple(next_step_lines), can_be_cut=False),
    )


def describe_call_flood(
    callers_and_counts: Iterable[tuple[str, int]], now: datetime, account_and_region_text: str
) -> NotificationText:
    """Return the notification about a flood: failed calls name more queues than Mendq reads.

    Args:
        callers_and_counts: Pairs of a caller and the number of unmanaged queue names in its calls
            that Mendq left out.
        now: The time of the notification.
        account_and_region_text: The account and region, from `format_account_and_region`.
    """
    opening_lines = (
        make_first_line(
            f"Mendq in {account_and_region_text}:",
            "calls name ever other queues: please look who calls.",
        ),
        "What: failed calls name more queues than Mendq looks at. It manages none of these.",
        "Why: managed queues come first, other names in turns, caller by caller; the rest is left.",
    )
    caller_lines = (
        f"{format_value(caller)}: {format_count(queue_name_count, 'name')}"
        for caller, queue_name_count in callers_and_counts
    )
    next_step_lines = (
        "runbook: docs/runbooks/intake_late.md",
        f"seen {format_utc_time(now)} in {account_and_region_text}",
    )
    return _describe_callers(
        "Mendq sees a flood of calls:",
        account_and_region_text,
        opening_lines,
        caller_lines,
        next_step_lines,
    )


def describe_held_back_notifications(
    callers: Iterable[str], account: str, region: str
) -> NotificationText:
    """Return the summary notification for notifications that Mendq holds back.

    `callers` are the callers in these notifications, or symptoms if a scan found the fault.
    """
    account_and_region_text = format_account_and_region(account, region)
    opening_lines = (
        make_first_line(
            f"Mendq in {account_and_region_text}:",
            "more pages than people can read: see the open cases.",
        ),
        "What: in this hour pages waited, about calls of these callers or what a scan found.",
        f"Why: nobody reads more than {NOTIFICATIONS_PER_HOUR} an hour. Each case is written down.",
    )
    caller_lines = (format_value(caller) for caller in callers)
    next_step_lines = (
        command_or_note(f"mendq cases --open --region {quote(to_plain_text(region))}"),
    )
    return _describe_callers(
        "Mendq holds pages back:",
        account_and_region_text,
        opening_lines,
        caller_lines,
        next_step_lines,
    )


def _describe_callers(
    subject: str,
    account_and_region_text: str,
    opening_lines: Sequence[str],
    caller_lines: Iterable[str],
    next_step_lines: tuple[str, ...],
) -> NotificationText:
    """Return a notification with a section of callers and a section of next steps."""
    callers_section = Section("WHO", limit_lines(caller_lines, MOST_NAMED_CALLERS))
    return _make_notification_text(
        make_subject(subject, account_and_region_text),
        opening_lines,
        callers_section,
        Section("NEXT", next_step_lines, can_be_cut=False),
    )


REFUSED_MAIL_RUNBOOK = "docs/runbooks/report_not_mailed.md"
# The most refused addresses that a notification names.
_MOST_NAMED_ADDRESSES = 20


class ReportRedelivery(Struct, frozen=True):
    """The data for the command that delivers a report again.

    Args:
        function: The name of the Lambda function that delivers reports.
        region: The function's region.
        key: The S3 key of the report's summary. The command sends it to the function.
    """

    function: str
    region: str
    key: str


# The reason why there is no report, for `mendq report` and `mendq doctor`.
NIGHTLY_JOB_OFF_REASON = (
    "the nightly job is off (nightly.enabled: false), so nobody counts incidents"
)


def describe_refused_mail(
    week: str, reason_by_address: Mapping[str, str], redelivery: ReportRedelivery
) -> NotificationText:
    """Return the notification that SES refused to mail the weekly report to some addresses.

    Args:
        week: The ISO week of the report.
        reason_by_address: SES's error message for each refused address.
        redelivery: Data for the command that delivers the report again.
    """
    address_count_text = format_count(len(reason_by_address), "address", "addresses")
    opening_lines = (
        f"SES refused to mail the report of week {to_plain_text(week, 10)}. Please act.",
        f"To: {address_count_text}; nobody else is kept waiting.",
    )
    refusal_lines = (
        f"{to_plain_text(address, 100)}: {to_plain_text(reason, 400)}"
        for address, reason in reason_by_address.items()
    )
    region = to_plain_text(redelivery.region, 32)
    event_json = json.dumps({"detail": {"object": {"key": redelivery.key}}}, separators=(",", ":"))
    next_step_lines = (
        command_or_note(f"aws sesv2 list-email-identities --region {region}"),
        command_or_note(
            f"aws lambda invoke --function-name {redelivery.function} --region {region} "
            f"--cli-binary-format raw-in-base64-out --payload {quote(event_json)} /dev/stdout"
        ),
        f"runbook: {REFUSED_MAIL_RUNBOOK}",
    )
    refusals_section = Section("REFUSED", limit_lines(refusal_lines, _MOST_NAMED_ADDRESSES))
    subject = f"Mendq: the report of week {to_plain_text(week, 10)} was not mailed"
    return _make_notification_text(
        subject, opening_lines, refusals_section, Section("NEXT", next_step_lines, can_be_cut=False)
    )
