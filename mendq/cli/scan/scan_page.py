"""The HTML page with the findings of `mendq scan`, in the style of the weekly report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

import mendq.report
from mendq.model.severity_class import SeverityClass
from mendq.report import links, words

# Queues of one symptom that the page shows at once. The others are folded.
MAXIMUM_UNFOLDED_QUEUES = 5
_TEMPLATES_FOLDER = Path(mendq.report.__file__).with_name("template")


def render_page(document: Mapping[str, Any]) -> str:
    """Return the HTML page of a scan. `document` is the JSON that `mendq scan --json` prints."""
    template_environment = Environment(
        loader=FileSystemLoader(_TEMPLATES_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template_environment.filters["parts"] = words.split_at_marks
    template_environment.globals.update(words=words, links=links)
    findings_by_title_and_symptom = {
        SeverityClass(class_name).title: _group_findings_by("symptom", findings)
        for class_name, findings in _group_findings_by("class", document["findings"]).items()
    }
    scanned_at = datetime.fromisoformat(document["at"])
    template = template_environment.get_template("scan.html.j2")
    return template.render(
        scan=document,
        at=words.format_time(scanned_at),
        kinds=findings_by_title_and_symptom,
        most_queues=MAXIMUM_UNFOLDED_QUEUES,
    )


def _group_findings_by(
    field_name: str, findings: Iterable[Mapping[str, Any]]
) -> dict[str, list[Mapping[str, Any]]]:
    """Group findings by the value of one field.

    The groups, and the findings in a group, are in the order of `findings`.
    """
    findings_by_value = defaultdict[str, list[Mapping[str, Any]]](list)
    for finding in findings:
        findings_by_value[finding[field_name]].append(finding)
    return findings_by_value
