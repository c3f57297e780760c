"""What a scan of a region found as one HTML file, in the look of the weekly report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

import mendq.report
from mendq.report import links, words

# Of one symptom; the page folds the others away.
MOST_QUEUES = 5
_TEMPLATES = Path(mendq.report.__file__).with_name("template")


def render_page(document: Mapping[str, Any]) -> str:
    """The whole HTML document of what `mendq scan --json` says."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["parts"] = words.split_at_marks
    environment.globals.update(words=words, links=links)
    kinds = {
        severity: _by(findings, "symptom")
        for severity, findings in _by(document["findings"], "severity").items()
    }
    at = datetime.fromisoformat(document["at"])
    found = environment.get_template("scan.html.j2")
    return found.render(scan=document, at=words.moment(at), kinds=kinds, most_queues=MOST_QUEUES)


def _by(findings: Iterable[Mapping[str, Any]], name: str) -> dict[str, list[Mapping[str, Any]]]:
    """In the order in which they come."""
    found = defaultdict[str, list[Mapping[str, Any]]](list)
    for each in findings:
        found[each[name]].append(each)
    return found
