"""Expressions of schedules and rules that Scheduler and EventBridge take; cfn-lint does not look.

https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from tests.infra.synthesized import Template
from tests.infra.template_rules.rule import Findings, Resources, Rule, properties

SCHEDULE = "AWS::Scheduler::Schedule"
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
FIELDS = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, MONTHS),
    ("day of the week", 1, 7, DAYS),
    ("year", 1970, 2199, ()),
)
_RATE = re.compile(r"rate\(([1-9][0-9]*) (minute|hour|day)(s?)\)")
_AT = re.compile(r"at\(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\)")


def findings(template: Template) -> Findings:
    for kind in (SCHEDULE, "AWS::Events::Rule"):
        for name, each in template.all(kind).items():
            expression = each["Properties"].get("ScheduleExpression")
            if expression is not None:
                yield from (f"{name}, {expression}: {said}" for said in _wrong(expression))


def _wrong(expression: str) -> Iterator[str]:
    if rate := _RATE.fullmatch(expression):
        if (rate[1] == "1") is bool(rate[3]):
            yield f"a rate of {rate[1]} takes {'no s' if rate[1] == '1' else 'an s'}"
    elif expression.startswith("cron(") and expression.endswith(")"):
        yield from _wrong_cron(expression[5:-1].split(" "))
    elif not _AT.fullmatch(expression):
        yield "neither rate, cron nor at"


def _wrong_cron(fields: list[str]) -> Iterator[str]:
    if len(fields) != len(FIELDS):
        yield f"{len(fields)} fields, and cron has {len(FIELDS)}"
        return
    if (fields[2] == "?") is (fields[4] == "?"):
        yield "one of the two days has to be a ?"
    for given, (title, lowest, highest, names) in zip(fields, FIELDS, strict=True):
        if given == "?" and title.startswith("day"):
            continue
        if not all(_is_of(part, lowest, highest, names) for part in given.split(",")):
            yield f"{given} is no {title}"


def _is_of(part: str, lowest: int, highest: int, names: tuple[str, ...]) -> bool:
    """A value, a range or all, perhaps by steps."""
    values, _, step = part.partition("/")
    if step and not (step.isdigit() and int(step)):
        return False
    if values == "*":
        return True
    ends = [lowest + names.index(end) if end in names else end for end in values.split("-")]
    if len(ends) > 2 or not all(f"{end}".isdigit() for end in ends):
        return False
    whole = [int(end) for end in ends]
    return whole == sorted(whole) and lowest <= whole[0] and whole[-1] <= highest


def _says(resources: Resources, expression: str) -> None:
    properties(resources, SCHEDULE)["ScheduleExpression"] = expression


RULE = Rule(
    findings,
    {
        expression: partial(_says, expression=expression)
        for expression in (
            "cron(0 2 * * *)",
            "cron(0 2 * * * *)",
            "cron(0 2 ? * ? *)",
            "cron(0 24 * * ? *)",
            "cron(0 6 ? * MONDAY *)",
            "cron(0 6 ? * 0 *)",
            "cron(60 2 * * ? *)",
            "cron(0 2 30-2 * ? *)",
            "cron(*/0 2 * * ? *)",
            "cron(0 2 * * ? 26)",
            "rate(1 minutes)",
            "rate(10 minute)",
            "rate(0 minutes)",
            "rate(5 min)",
            "every 5 minutes",
        )
    },
)
