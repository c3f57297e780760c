"""The pages about many queues at once, and about the pages themselves."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from shlex import quote

from functions.healing.page import MOST_BYTES, Page, first_line, place, subject_of
from functions.healing.plain_text import Section, body, command_line, first_of, moment, plain

_MOST_QUEUES = 10


def of_mass_symptom(  # noqa: PLR0913 - each is one thing that a reader asks
    symptom: str,
    sentence: str,
    runbook: str,
    *,
    queue_arns: Collection[str],
    managed_queues: int,
    now: datetime,
    account: str,
    region: str,
    advice: str,
    next_command: str = "",
) -> Page:
    """One page for many queues at once; `managed_queues` 0: not counted."""
    words, where = plain(symptom.replace("_", " "), 26), place(account, region)
    of_all = f"{len(queue_arns)} of {managed_queues}" if managed_queues else f"{len(queue_arns)}"
    names = sorted(plain(each.rpartition(":")[2], 80) for each in queue_arns)
    opening = (
        first_line(f"{of_all} queues: {words}.", "One cause elsewhere is likely: please look."),
        f"What: {plain(sentence, 300)}",
        "Why: many queues at once have a cause that is not theirs. Mendq changes none of them now.",
    )
    sections = (
        Section("QUEUES", first_of(names, _MOST_QUEUES)),
        Section(
            "NEXT",
            (
                plain(advice, 600),
                *([command_line(next_command)] if next_command else []),
                f"runbook: {plain(runbook)}",
                f"seen {moment(now)} in {where}",
            ),
            cut=False,
        ),
    )
    subject = subject_of(f"Mendq stopped: {words} on", f"{of_all} queues in {where}")
    return Page(subject, body(opening, sections, MOST_BYTES))


def of_held_back(account: str, region: str, now: datetime, pages_per_hour: int) -> Page:
    """The last page of an hour that had more of them than people can read."""
    where = place(account, region)
    opening = (
        first_line(f"Mendq in {where}:", "more pages than people can read: see the open cases."),
        f"What: {pages_per_hour} pages went out in the hour of {moment(now)}; more are held back.",
        "Why: nobody reads more. Every case is written down, paged or not.",
    )
    prefix = f"cases/dt={now.astimezone(UTC):%Y-%m-%d}/"
    bucket = (
        f"aws cloudformation describe-stacks --region {quote(plain(region))} --stack-name Mendq"
        " --query \"Stacks[0].Outputs[?OutputKey=='CaseBucket'].OutputValue\" --output text"
    )
    lines = (
        "the cases of today; the first command prints CASE_BUCKET:",
        bucket,
        f"aws s3api list-objects-v2 --bucket CASE_BUCKET --prefix {prefix}",
    )
    subject = subject_of("Mendq holds pages back:", f"over {pages_per_hour} in an hour, {where}")
    return Page(subject, body(opening, (Section("NEXT", lines, cut=False),), MOST_BYTES))
