"""Make the tables of the symptoms and their tags, and the links to the symptoms' runbooks.

The module needs only the catalogue, so that `make check-symptom` and its tests need not load the
stack. docs/derive.py inserts the result of each public function that returns a text into the pages.
"""

from __future__ import annotations

from collections import defaultdict

from docs.markdown import ROOT, format_as_code, link_pages, make_table
from mendq.aws.consumers import FUNCTION_METRIC_BY_KEY
from mendq.catalogue import CATALOGUE, list_known_tags
from mendq.catalogue.consumers.mapping_refused import MAPPING_REFUSED
from mendq.catalogue.symptom import Detection, Symptom
from mendq.model.facts import Need, list_scan_read_actions
from mendq.model.metrics import select_series
from mendq.notifications.text import format_count
from mendq.scan.scan import NEEDS_READ_FOR_SUSPECTS


def symptoms() -> str:
    """Return a table of all symptoms: how each is found, what that costs, and what Mendq does."""
    rows: list[tuple[str, ...]] = []
    for symptom in CATALOGUE:
        found_by_texts: list[str] = []
        cost_texts: list[str] = []
        if symptom.seen_as:
            confirmation_note = ", *unconfirmed on AWS*" if symptom.is_unconfirmed else ""
            found_by_texts.append(f"failed calls{confirmation_note}")
            cost_texts.append(_describe_costs_of_calls(symptom))
        if symptom.is_of_template:
            found_by_texts.append("[`mendq lint`](lint.md)")
            cost_texts.append("nothing")
        elif symptom.detection:
            found_by_texts.append("the scan")
            cost_texts.append(_describe_scan_costs(symptom.detection))
        rows.append(
            (
                f"[`{symptom.name}`]({symptom.runbook.removeprefix('docs/')})",
                symptom.sentence,
                " · ".join(found_by_texts),
                " · ".join(cost_texts),
                symptom.plan_in_words,
                symptom.default_mode_text,
            )
        )
    headings = "symptom|what goes wrong|found by|what it costs to see|what Mendq does|ships as"
    return make_table(headings, rows)


def families() -> str:
    """Return a table of the families, which are the catalogue's folders, with their symptoms."""
    runbooks_by_family = defaultdict[str, list[str]](list)
    for symptom in CATALOGUE:
        (path,) = (ROOT / "mendq" / "catalogue").glob(f"*/{symptom.name}.py")
        runbooks_by_family[path.parent.name].append(symptom.runbook)
    rows = (
        (family, link_pages(runbook_pages, "docs"))
        for family, runbook_pages in sorted(runbooks_by_family.items())
    )
    return make_table("family|symptoms", rows)


def tags() -> str:
    """Return a table of the queue tags that Mendq reads."""
    rows: list[tuple[str, ...]] = []
    for tag in list_known_tags().values():
        symptoms_with_tag = [symptom for symptom in CATALOGUE if _has_tag(symptom, tag.key)]
        values_text = format_as_code(tag.words) if tag.words else tag.values
        symptom_links_text = (
            link_pages((symptom.runbook for symptom in symptoms_with_tag), "docs")
            or "every symptom"
        )
        rows.append((format_as_code([tag.key]), values_text, tag.meaning, symptom_links_text))
    return make_table("tag|value|what it does|read by", rows)


def _has_tag(symptom: Symptom, tag_key: str) -> bool:
    """Return True if a symptom reads the tag with this key."""
    return any(tag.key == tag_key for tag in symptom.tags)


def _describe_costs_of_calls(symptom: Symptom) -> str:
    """Return which kind of CloudTrail events shows the failed calls of a symptom."""
    if symptom.name == MAPPING_REFUSED.name:
        return "management events (`trail.managementEvents`, or another trail that logs them)"
    return "data events"


def _describe_scan_costs(detection: Detection) -> str:
    """Return what a scan reads from AWS for a symptom: kinds of calls, and metrics of a queue.

    Metrics are read only for queues that the calls have made suspect.
    """
    needs_measurements = Need.MEASUREMENTS in detection.needs
    needs_of_scan = detection.needs | (
        NEEDS_READ_FOR_SUSPECTS if needs_measurements else {Need.QUEUE}
    )
    calls_text = format_count(
        len(list_scan_read_actions(needs_of_scan)), "kind of call", "kinds of call"
    )
    metric_series = select_series(detection.metric_kinds or ["every queue"])
    metric_count = len(metric_series) * needs_measurements + (Need.REDRIVE_SOURCES in needs_of_scan)
    if not metric_count:
        return f"{calls_text}, no metric"
    return f"{calls_text}, {metric_count} metrics and {len(FUNCTION_METRIC_BY_KEY)} a function"


def runbooks() -> str:
    """Return links to the runbooks of the symptoms."""
    symptom_links = link_pages((symptom.runbook for symptom in CATALOGUE), "docs/runbooks")
    return f"Symptoms: {symptom_links}."
