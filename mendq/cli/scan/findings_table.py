"""Findings as people read them: whose, what was found, what comes of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from rich.table import Table
from rich.text import Text

from mendq.cases.finding import Finding
from mendq.catalogue._time_left import most_urgent_first
from mendq.cli.scan.would_do import BY_NAME, WouldDo
from mendq.model.queue import parts_of
from mendq.notifications.text import plain

_MOST_NAMED = 4
_NAME_WIDTH = 34
Would = Mapping[Finding, WouldDo]


def findings_table(would: Would) -> Table:
    """Two columns, so that it fits 80: whose and what, then the numbers and what comes of it.

    Several queues with a fault that is only reported are one row.
    """
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 1, 0), header_style="bold")
    shown.add_column("QUEUE, SYMPTOM", max_width=_NAME_WIDTH, overflow="fold")
    shown.add_column("WHAT WAS FOUND, AND WHAT MENDQ DOES", overflow="fold")
    for name, findings in _by_symptom(would).items():
        if len(findings) > 1 and _is_only_reported(name):
            shown.add_row(*_row(f"{len(findings)} queues", name, _together(findings)))
            continue
        for each in findings:
            said = _because(each.because, would[each].line)
            shown.add_row(*_row(parts_of(each.queue_arn).name, name, said))
    return shown


def _by_symptom(would: Iterable[Finding]) -> dict[str, list[Finding]]:
    """In the catalogue's order, each with what is lost first; what is only reported stands last."""
    found: dict[str, list[Finding]] = defaultdict(list)
    for each in most_urgent_first(would, lambda finding: finding.seconds_left):
        found[each.symptom].append(each)
    names = sorted((name for name in BY_NAME if name in found), key=_is_only_reported)
    return {name: found[name] for name in names}


def _is_only_reported(name: str) -> bool:
    return BY_NAME[name].plan is None


def _row(whose: str, symptom: str, said: Text) -> tuple[Text, Text]:
    return Text.assemble((plain(whose, 80), "bold"), "\n", (symptom, "yellow")), said


def _because(found: str, comes_of_it: str) -> Text:
    return Text.assemble(plain(found, 400), "\n", (f"-> {plain(comes_of_it, 400)}", "cyan"))


def _together(findings: Sequence[Finding]) -> Text:
    """Many of the same: the sentence once, and a few names."""
    names = [parts_of(each.queue_arn).name for each in findings]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    sentence = BY_NAME[findings[0].symptom].sentence
    return _because(sentence, f"only reports it: {', '.join(names[:_MOST_NAMED])}{more}")
