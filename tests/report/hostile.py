"""Summaries whose every text is an attacker's, in the shape that `read` accepts."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.report.weeks import (
    DAYS,
    incident,
    nightly,
    notified,
    queue_days,
    reached_a_person,
    recommendation,
    scanned,
    times,
    week,
)

PAYLOADS = (
    "<script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "<a href=javascript:alert(1)>x</a>",
    "<!-- ", "-->", "]]>", "&lt;b&gt;", "&#60;script&#62;", "{{ 7 * 7 }}", "{% raw %}",
    "data:text/html,<script>alert(1)</script>",
    "http://evil.example/", "https://https://", "www.evil.example",
    "=cmd()|' /C calc'!A0", "[x](javascript:alert(1))", "`code`", "\x1b[31mred\x1b[0m",
    "a\nSubject: paid", "a\r\n\r\nb", "\N{RIGHT-TO-LEFT OVERRIDE}gpj.exe", "\x00", "\ud800",
    "\N{ZERO WIDTH JOINER}" * 9, "<" * 400, "q" * 80, "datum.label", "signal", "",
)  # fmt: skip
KINDS = ("write_into_template", "approve", "watch", "decide", "fix", "fix_caller", "name_code")
WHYS = ("verified", "proposed", "refused", "overridden", "unknown_code", "count_only")
RECOMMENDATION_NUMBERS = {"incidents", "failed_calls", "queues"}
TEXT = st.one_of(
    st.sampled_from(PAYLOADS),
    st.text(st.characters(exclude_categories=[]), max_size=120),
)


@st.composite
def hostile_weeks(draw: st.DrawFn) -> dict[str, Any]:
    """Every string that is not a date, a week or the queue's place is drawn."""
    cases = [draw(_incidents(day)) for day in range(draw(st.integers(0, 3)))]
    symptoms = draw(st.lists(TEXT, max_size=8))
    files = draw(st.lists(st.tuples(TEXT, TEXT), max_size=2))
    document = week(
        cases,
        accounts=draw(st.lists(TEXT, max_size=4)),
        regions=draw(st.lists(TEXT, max_size=2)),
        by_outcome=dict.fromkeys(draw(st.lists(TEXT, max_size=2)), 1),
        by_symptom=dict.fromkeys(symptoms, 1),
        habits=draw(st.dictionaries(TEXT, TEXT, max_size=2)) | dict.fromkeys(symptoms, "<b>"),
        not_seen={
            "unknown_code": dict.fromkeys(draw(st.lists(TEXT, max_size=3)), 2),
            "unreadable_files": [{"file": file, "reason": reason} for file, reason in files],
            "nightly_runs": [draw(_nightly_runs(day)) for day in range(2)],
        },
        queue_days=queue_days(cases),
        times_to_heal=[times(symptom, *range(1, n + 2)) for n, symptom in enumerate(symptoms)],
        reached_a_person=reached_a_person(*(draw(_notified()) for _ in cases)),
        scanned=scanned(notified=1) | {"cases": 2, "by_symptom": dict.fromkeys(symptoms, 1)},
        do_this_week=[draw(_recommendations()) for _ in range(draw(st.integers(0, 3)))],
    )
    document["per_day"] += [
        {"date": f"{DAYS[n % 7]}", "symptom": symptom, "incidents": n + 1, "failed_calls": 3}
        for n, symptom in enumerate(symptoms)
    ]
    return document


@st.composite
def _incidents(draw: st.DrawFn, day: int) -> dict[str, Any]:
    return incident(
        day=day,
        incident_id=draw(TEXT),
        queue_arn=draw(TEXT),
        symptom=draw(TEXT),
        outcome=draw(TEXT),
        why=draw(st.none() | TEXT),
        reason=draw(TEXT),
        case_id=draw(st.none() | TEXT),
        error_codes=draw(st.lists(TEXT, max_size=4)),
        principals=draw(st.lists(TEXT, max_size=3)),
        notified=draw(st.booleans()),
    )


@st.composite
def _notified(draw: st.DrawFn) -> dict[str, Any]:
    names = ("case_id", "queue_arn", "symptom", "state", "reason")
    return notified(scanned=draw(st.booleans()), **{name: draw(TEXT) for name in names})


@st.composite
def _recommendations(draw: st.DrawFn) -> dict[str, Any]:
    kinds = st.sampled_from(KINDS) | TEXT
    texts = {
        name: draw(TEXT)
        for name in recommendation()
        if name not in {"kind", "why", *RECOMMENDATION_NUMBERS}
    }
    return (
        recommendation() | texts | {"kind": draw(kinds), "why": draw(st.sampled_from(WHYS) | TEXT)}
    )


@st.composite
def _nightly_runs(draw: st.DrawFn, day: int) -> dict[str, Any]:
    verdict = draw(st.sampled_from(("read", "far_fewer", "nothing_read", "partial")) | TEXT)
    reader = draw(st.sampled_from(("native", "standard_library")) | TEXT)
    return nightly(DAYS[day], reader=reader, why_fallback=draw(TEXT), verdict=verdict)
