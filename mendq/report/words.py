"""Format numbers, times, names and values for the report, in English.

Names, error codes and reasons in a summary are written by other people, perhaps by an attacker.
Three rules apply to them:

1. `make_visible` shortens such a text and shows invisible characters as codes, before the text is
   shown or put into a sentence.
2. Inside a sentence, such a text is marked by `mark_name` or `mark_quote`. The page and the mail
   then show it differently from Mendq's own words. The marks are private Unicode characters.
   `make_visible` replaces these characters in other people's text, so nobody can forge a mark.
3. Escaping is done at the output: the page escapes HTML, and the mail breaks links.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from itertools import pairwise

from mendq.report.summary import Summary
from mendq.report.summary_parts import (
    COUNT_ONLY_REASON,
    FIXED_OUTCOMES,
    POSSIBLE_RACE_REASON,
    UNRESOLVED_QUEUE,
    Incident,
)

# Unicode categories that nobody sees: control, format (text direction, zero width), surrogate,
# private use, unassigned, line and paragraph separators.
_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_LINE_WHITESPACE = "\t\n\r"
CUT_MARK = "…"
MOST_NAME_CHARACTERS = 80
MOST_PRINCIPAL_CHARACTERS = 64
MOST_SENTENCE_CHARACTERS = 300
# A dot before a letter makes a domain. `.fifo` is left alone: FIFO queues' names end in it, and it
# is no top-level domain.
_DOMAIN_DOT_PATTERN = r"(?<=\S)[.\u3002\uff0e\uff61](?!fifo\b)(?=[^\W\d_][^\s.,;:)])"
_LINK_REGEX = re.compile(
    rf"(?<=:)//|(?<=\bmailto):|(?<=www)\.|{_DOMAIN_DOT_PATTERN}|(?<=\d)\.(?=\d+\.\d+\.\d)",
    re.IGNORECASE,
)


def make_visible(text: str, most_characters: int = MOST_NAME_CHARACTERS) -> str:
    """Cut a text after `most_characters`, and show invisible characters as codes (`[U+200B]`).

    A text that is cut ends in CUT_MARK. Tabs, line ends and blanks of any kind become spaces.
    """
    visible_text = "".join(
        _make_character_visible(character) for character in text[:most_characters]
    )
    return f"{visible_text}{CUT_MARK}" if len(text) > most_characters else visible_text


def break_links(text: str) -> str:
    """Return a text in which mail programs find no links: `example.com` becomes `example[.]com`.

    Used for mails and for the text of an SNS topic. In the page, browsers do not turn text into
    links. Commands must stay unchanged, because people copy them.
    """
    return _LINK_REGEX.sub(r"[\g<0>]", text)


def clean_sentence(sentence: str) -> str:
    """Shorten another author's sentence, make it visible, and replace backticks by `'`."""
    return make_visible(sentence.replace("`", "'"), MOST_SENTENCE_CHARACTERS)


def _make_character_visible(character: str) -> str:
    unicode_category = unicodedata.category(character)
    if character in _LINE_WHITESPACE or unicode_category == "Zs":
        return " "
    return f"[U+{ord(character):04X}]" if unicode_category in _INVISIBLE_CATEGORIES else character


_DAY_NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTH_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_BYTE_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")
_MINUTE_SECONDS = 60
_HOUR_SECONDS = 3600
_DAY_SECONDS = 86400

_SPACE_BEFORE_UNIT_REGEX = re.compile(r"(?<=\d) (?=(?:s|min|h|d|%|bytes?|[kMGTPE]B|points?)(?!\w))")


def keep_units_together(text: str) -> str:
    """Put a no-break space between each number and its unit, so that lines do not break there."""
    return _SPACE_BEFORE_UNIT_REGEX.sub("\N{NO-BREAK SPACE}", text)


def format_count(count: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun: `1 incident`, `1,204 incidents`.

    `plural` must be given only if it is not `singular` with an `s`.
    """
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def format_calls(count: int) -> str:
    """Return `12 failed calls`; for 0 return `found by a scan`."""
    return format_count(count, "failed call") if count else "found by a scan"


def join_names(names: Sequence[str]) -> str:
    """Join names as in a sentence: `a`, `a and b`, `a, b and c`. `names` must not be empty."""
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def was_or_were(count: int) -> str:
    return "was" if count == 1 else "were"


def sort_by_count(count_by_name: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return names with their counts, the largest count first. Equal counts are sorted by name."""
    return sorted(count_by_name.items(), key=lambda item: (-item[1], item[0]))


_UNITS_AND_THEIR_SECONDS = (
    ("d", _DAY_SECONDS),
    ("h", _HOUR_SECONDS),
    ("min", _MINUTE_SECONDS),
    ("s", 1),
)


def format_duration(seconds: float) -> str:
    """Return a duration in at most two units: `41 s`, `4 min 10 s`, `2 h 5 min`, `3 d 4 h`.

    Return `under 1 s` for a duration between 0 and 1 s.
    """
    whole_seconds = round(seconds)
    for (unit, unit_seconds), (smaller_unit, smaller_unit_seconds) in pairwise(
        _UNITS_AND_THEIR_SECONDS
    ):
        if whole_seconds >= unit_seconds:
            smaller_count = whole_seconds % unit_seconds // smaller_unit_seconds
            return f"{whole_seconds // unit_seconds:,} {unit}" + (
                f" {smaller_count} {smaller_unit}" if smaller_count else ""
            )
    return f"{whole_seconds} s" if seconds >= 1 or not seconds else "under 1 s"


def format_bytes(size_bytes: int) -> str:
    """Return a size in decimal units, such as `81.2 MB`. Below 1 kB, return bytes: `1 byte`."""
    scaled_size = float(size_bytes)
    unit_index = 0
    while round(scaled_size, 1) >= 1000 and unit_index < len(_BYTE_UNITS) - 1:
        scaled_size /= 1000
        unit_index += 1
    return (
        f"{scaled_size:.1f} {_BYTE_UNITS[unit_index]}"
        if unit_index
        else format_count(size_bytes, "byte")
    )


def format_percent(part: int, whole: int) -> str:
    """Return `part` as a percentage of `whole`, which must be above 0.

    A part above 0 is never shown as `0 %`, and a part below the whole never as `100 %`.
    """
    percent = round(100 * part / whole)
    if part and not percent:
        return "under 1 %"
    return "over 99 %" if part < whole and percent == 100 else f"{percent} %"


def format_number(value: float) -> str:
    """Return a number with at most one digit after the decimal point: `21`, `20.5`."""
    return f"{value:,.1f}".removesuffix(".0")


def format_short_day(day: date) -> str:
    """Return the weekday and the day of the month: `Thu 12`."""
    return f"{_DAY_NAMES[day.weekday()]} {day.day}"


def format_day(day: date) -> str:
    """Return the weekday, the day and the month: `Thu 12 Nov`."""
    return f"{format_short_day(day)} {_MONTH_NAMES[day.month - 1]}"


def format_time(time: datetime) -> str:
    """Return a time, which must be in UTC, as a text: `Thu 12 Nov 2026 14:02 UTC`."""
    return f"{format_day(time)} {time.year} {format_clock_time(time)} UTC"


def format_clock_time(time: datetime) -> str:
    """Return the time of day: `14:02`."""
    return f"{time.hour:02}:{time.minute:02}"


def format_time_span(begin_time: datetime, end_time: datetime) -> str:
    """Return a span of time: `Thu 12 14:02-14:09`, or `Thu 12 23:58 to Fri 13 00:04`.

    If both times are in the same minute, only one is returned: `Thu 12 14:02`. The dash is an en
    dash.
    """
    begin_text = f"{format_short_day(begin_time)} {format_clock_time(begin_time)}"
    end_text = f"{format_short_day(end_time)} {format_clock_time(end_time)}"
    if begin_text == end_text:
        return begin_text
    if format_short_day(begin_time) == format_short_day(end_time):
        return f"{begin_text}\N{EN DASH}{format_clock_time(end_time)}"
    return f"{begin_text} to {end_text}"


def format_day_range(first_day: date, last_day: date) -> str:
    """Return a span of days: `9 to 15 Nov 2026`.

    If the months or years differ, they are given for both days.
    """
    end_text = f"{last_day.day} {_MONTH_NAMES[last_day.month - 1]} {last_day.year}"
    if first_day.year != last_day.year:
        return f"{first_day.day} {_MONTH_NAMES[first_day.month - 1]} {first_day.year} to {end_text}"
    month_text = (
        f" {_MONTH_NAMES[first_day.month - 1]}" if first_day.month != last_day.month else ""
    )
    return f"{first_day.day}{month_text} to {end_text}"


def format_week(week: str) -> str:
    """Return the name of a week: `week 46 of 2026` for `2026-W46`."""
    return f"week {int(week[6:])} of {int(week[:4])}"


def format_queue_name(queue_arn: str) -> str:
    """Return the queue's name from its ARN, with invisible characters replaced.

    For UNRESOLVED_QUEUE in place of an ARN, return `an unknown queue`.
    """
    if queue_arn == UNRESOLVED_QUEUE:
        return "an unknown queue"
    return make_visible(queue_arn.rpartition(":")[2] or queue_arn)


# Parts of symptom names that are written in capitals.
_CAPITALS_BY_WORD = {"dlq": "DLQ", "kms": "KMS", "fifo": "FIFO", "id": "ID", "tls": "TLS"}


def format_symptom(symptom: str) -> str:
    """Return a symptom's name in words: `DLQ messages waiting` for `dlq_messages_waiting`.

    For an unknown error code, such as `unknown:CODE`, return `Unknown error CODE`.
    """
    if error_code := symptom.partition("unknown:")[2]:
        return f"Unknown error {make_visible(error_code)}"
    title_words = [_CAPITALS_BY_WORD.get(word, word) for word in make_visible(symptom).split("_")]
    symptom_title = " ".join(title_words)
    return symptom_title[:1].upper() + symptom_title[1:]


def format_principal(principal_arn: str) -> str:
    """Return the name in a principal's ARN, such as `role/orders`.

    A text that is not an ARN is its own name. A long name is cut (`make_visible`).
    """
    arn_parts = principal_arn.split(":", 5)
    principal_name = arn_parts[5] if len(arn_parts) == 6 and arn_parts[5] else principal_arn
    return make_visible(principal_name, MOST_PRINCIPAL_CHARACTERS)


_NAME_MARK = "\ue000"
_QUOTE_MARK = "\ue001"
_END_MARK = "\ue002"
_MARKED_TEXT_REGEX = re.compile(f"([{_NAME_MARK}{_QUOTE_MARK}])([^{_END_MARK}]*){_END_MARK}")


def mark_name(name: str, most_characters: int = MOST_NAME_CHARACTERS) -> str:
    """Return a name or value between two marks, for use in one of Mendq's sentences.

    The marks say that Mendq did not choose this text. `split_at_marks` finds them.
    """
    return f"{_NAME_MARK}{make_visible(name, most_characters)}{_END_MARK}"


def mark_queue(queue_arn: str) -> str:
    """Return the name of a queue between two marks, for use in a sentence.

    The marks say that Mendq did not choose this text. `split_at_marks` finds them.
    """
    return f"{_NAME_MARK}{format_queue_name(queue_arn)}{_END_MARK}"


def mark_quote(sentence: str) -> str:
    """Mark another author's sentence, such as a reason, as a quote."""
    return f"{_QUOTE_MARK}{clean_sentence(sentence)}{_END_MARK}"


def remove_marks(sentence: str) -> str:
    """Remove the marks that `mark_name` and `mark_quote` have set, for plain text.

    A full stop after a shortened name or quote is removed too.
    """
    return _MARKED_TEXT_REGEX.sub(r"\2", _drop_full_stop_after_cut_mark(sentence))


def _drop_full_stop_after_cut_mark(sentence: str) -> str:
    """Remove the full stop after a name or quote that was shortened: it ends in `…` already."""
    return sentence.replace(f"{CUT_MARK}{_END_MARK}.", f"{CUT_MARK}{_END_MARK}")


def split_at_marks(sentence: str) -> Iterator[tuple[str, str]]:
    """Split a sentence at the marks that `mark_name` and `mark_quote` have set.

    Yield a pair for each piece: its kind (`text`, `name` or `quote`), and its text without marks. A
    full stop after a shortened name or quote is removed.
    """
    sentence = _drop_full_stop_after_cut_mark(sentence)
    end_of_last_match = 0
    for mark_match in _MARKED_TEXT_REGEX.finditer(sentence):
        if end_of_last_match < mark_match.start():
            yield "text", sentence[end_of_last_match : mark_match.start()]
        yield "name" if mark_match[1] == _NAME_MARK else "quote", mark_match[2]
        end_of_last_match = mark_match.end()
    if end_of_last_match < len(sentence):
        yield "text", sentence[end_of_last_match:]


def join_most_frequent(
    count_by_name: Mapping[str, int], most_names: int, left_out_count: int = 0
) -> str:
    """Return a text with the names that have the largest counts: `a (9), b (4) and 3 more`.

    Args:
        count_by_name: The count of each name.
        most_names: The number of names to list.
        left_out_count: The number of further names, which `count_by_name` does not contain.
    """
    names_with_counts = [
        f"{name} ({count:,})" for name, count in sort_by_count(count_by_name)[:most_names]
    ]
    unlisted_name_count = len(count_by_name) - len(names_with_counts) + left_out_count
    if unlisted_name_count:
        names_with_counts.append(f"{unlisted_name_count:,} more")
    return join_names(names_with_counts)


MAXIMUM_NAMED_LEADERS = 2


def describe_leaders(
    names_and_counts: Sequence[tuple[str, int]], noun: str, total_incidents: int
) -> str:
    """Return a sentence about the days or queues with most incidents.

    For example: `Thu 12 Nov had the most: 7 of 20 incidents.` If more than MAXIMUM_NAMED_LEADERS
    have the most, they are counted and not named. If there are several incidents and no day or
    queue has more than one, the sentence says that.

    Args:
        names_and_counts: The name of each day or queue, with its number of incidents.
        noun: `day` or `queue`.
        total_incidents: The number of all incidents.
    """
    highest_count = max(count for _, count in names_and_counts)
    names_with_highest_count = [name for name, count in names_and_counts if count == highest_count]
    if highest_count == 1 < total_incidents:
        return f"No {noun} had more than one incident."
    if highest_count == total_incidents:
        share_text = (
            "the one incident" if highest_count == 1 else f"all {highest_count:,} incidents"
        )
        return f"{names_with_highest_count[0]} had {share_text}."
    are_few_leaders = len(names_with_highest_count) <= MAXIMUM_NAMED_LEADERS
    leaders_text = (
        join_names(names_with_highest_count)
        if are_few_leaders
        else format_count(len(names_with_highest_count), noun)
    )
    each_word = " each" if len(names_with_highest_count) > 1 else ""
    incidents_text = format_count(total_incidents, "incident")
    return f"{leaders_text} had the most: {highest_count:,} of {incidents_text}{each_word}."


def format_account_and_region(summary: Summary, queue_arn: str) -> str:
    """Return a queue's account and region, such as `123456789012, us-east-1`.

    Empty if the summary has only one account and one region, or if `queue_arn` is not an ARN.
    """
    if len(summary.accounts) * len(summary.regions) <= 1:
        return ""
    arn_parts = queue_arn.split(":")
    return make_visible(f"{arn_parts[4]}, {arn_parts[3]}") if len(arn_parts) == 6 else ""


_NUMBER_REGEX = re.compile(r"0|[1-9][0-9]{0,11}", re.ASCII)
_ATTRIBUTE_IN_SECONDS_REGEX = re.compile(
    r"VisibilityTimeout|MessageRetentionPeriod|\w{1,64}Seconds", re.ASCII
)


def format_value(attribute: str, value: str) -> str:
    """Return an attribute's value with its unit, such as `690 s` or `1,209,600 s (14 d)`.

    A value that is not a number is marked as other people's text. Empty if the value is empty or
    longer than 40 characters.
    """
    if not value or len(value) > 40:
        return ""
    if not _NUMBER_REGEX.fullmatch(value):
        return mark_name(value)
    whole_number = int(value)
    if _ATTRIBUTE_IN_SECONDS_REGEX.fullmatch(attribute):
        duration_text = (
            f" ({format_duration(whole_number)})" if whole_number > _HOUR_SECONDS else ""
        )
        return f"{whole_number:,} s{duration_text}"
    if attribute == "MaximumMessageSize":
        return f"{whole_number:,} bytes"
    return f"{whole_number:,}"


def describe_change(attribute: str, value_before: str, value_after: str) -> str:
    """Return the change of an attribute: `from 460 s to 690 s`, or `to 690 s` without an old value.

    Empty if `format_value` returns no text for the new value.
    """
    old_value_text = format_value(attribute, value_before)
    new_value_text = format_value(attribute, value_after)
    if not new_value_text:
        return ""
    return (
        f"from {old_value_text} to {new_value_text}" if old_value_text else f"to {new_value_text}"
    )


OUTCOMES_NEEDING_A_PERSON = frozenset({"proposed", "escalated", "overridden"})
# Outcomes that the page shows in the colour of waiting: those that need a person, and changes
# without effect.
_WAITING_OUTCOMES = OUTCOMES_NEEDING_A_PERSON | {"ineffective"}

# Words for the outcomes of incidents that were not healed, in the order in which they are printed.
WORDS_BY_OUTCOME = {
    "applied": "changed but not verified yet",
    "observed": "only observed (mode observe)",
    "proposed": "waiting for approval",
    "refused": "refused",
    "declined": "declined",
    "expired": "expired without an answer",
    "ineffective": "changed without effect",
    "overridden": "left to whoever set another value",
    "rolled_back": "rolled back",
    "escalated": "left to a person",
    "not_seen": "without a case",
}

# Words for the reasons that the nightly job gives for an incident without a case.
WORDS_BY_NO_CASE_REASON = {
    "not_managed": "Mendq does not manage this queue",
    "not_tagged_in_time": "the queue was tagged only after it failed",
    "muted": "a mute in the settings names this queue and symptom",
    "event_lost": "CloudTrail recorded the calls, and probably no event reached Mendq",
    "no_evidence": "the calls carry no messages, or come from new sessions: Mendq ignores them",
    "elsewhere": "the queue is of another account or region",
    "case_open": "an earlier case of the queue was still open",
    "too_little_evidence": "too few failed calls, or too far apart, for Mendq to believe them",
    "unresolved_queue": "the calls do not say which queue they were about",
    "unknown": "neither the logs nor the cases say why",
    "unknown_code": "no entry of the catalogue knows this error code",
    COUNT_ONLY_REASON: "a caller's mistake, counted only",
    POSSIBLE_RACE_REASON: (
        "the message may just have been deleted, so Mendq measures a queue that it manages"
    ),
}


def choose_tone(outcome: str) -> str:
    """Return the CSS class for the colour of an outcome: `good`, `waiting` or `plain`.

    `waiting` means that the incident needs a person, or that Mendq's change had no effect.
    """
    if outcome in FIXED_OUTCOMES:
        return "good"
    return "waiting" if outcome in _WAITING_OUTCOMES else "plain"


def describe_reason(incident: Incident) -> str:
    """Return why an incident has no case, in words. If it has a case, return its last reason."""
    return WORDS_BY_NO_CASE_REASON.get(incident.why or "") or clean_sentence(
        incident.why or incident.reason
    )
