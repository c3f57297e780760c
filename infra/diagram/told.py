"""Who hears of what in a template, and the page where people look."""

from __future__ import annotations

import json
from collections.abc import Iterator

from infra.diagram.arrows import TELLS, WATCHES, Arrow, Resources
from infra.diagram.card import Card
from infra.diagram.grants import who_may
from infra.diagram.names import ALARMS, DASHBOARD, KEY, TOPIC, count, kinds, title
from infra.diagram.references import references

OWN_METRICS = "Mendq's own metrics"


def told(resources: Resources, found: tuple[Arrow, ...]) -> Iterator[Card]:
    yield from _topics(resources, found)
    yield from _keys(resources)
    yield from _alarms(resources, found)
    yield from _dashboards(resources)


def _topics(resources: Resources, found: tuple[Arrow, ...]) -> Iterator[Card]:
    for name in _of(resources, TOPIC):
        alarms = sum(arrow.target == name and arrow.does == TELLS for arrow in found)
        tellers = [title(each, resources) for each in who_may("tells", name, resources)]
        said = [*tellers, *([count(alarms, "alarm")] * bool(alarms))]
        people = f"pages.{'urgent' if 'Urgent' in name else 'info'} of the settings"
        yield Card(title(name, resources), "", tuple(said), (f"tells {people}",))


def _keys(resources: Resources) -> Iterator[Card]:
    for name in _of(resources, KEY):
        encrypted = [
            f"encrypts what goes to {title(each, resources)}"
            for each in _of(resources, TOPIC)
            if name in references(resources[each]["Properties"].get("KmsMasterKeyId"))
        ]
        yield Card(title(name, resources), "", (), tuple(encrypted))


def _alarms(resources: Resources, found: tuple[Arrow, ...]) -> Iterator[Card]:
    of = _of(resources, *ALARMS)
    if not of:
        return
    telling = [each for each in found if each.does == TELLS and each.source in of]
    paging = len({each.source for each in telling})
    says = f"{paging} reach people; the other {len(of) - paging} are what some of those stand on"
    watched = kinds((each.source for each in found if each.does == WATCHES), resources)
    tells = tuple(f"tells {title(each, resources)}" for each in sorted({e.target for e in telling}))
    yield Card(count(len(of), "alarm"), says, (OWN_METRICS, *watched), tells)


def _dashboards(resources: Resources) -> Iterator[Card]:
    for name in _of(resources, DASHBOARD):
        body = resources[name]["Properties"]["DashboardBody"]
        shown = references(body) & resources.keys()
        alarms = shown & set(_of(resources, *ALARMS))
        charts = json.dumps(body).count(json.dumps('"type":"metric"')[1:-1])
        looks = (OWN_METRICS, *kinds(shown - alarms, resources), count(len(alarms), "alarm"))
        yield Card(title(name, resources), f"{count(charts, 'chart')}, for whoever looks", looks)


def _of(resources: Resources, *types: str) -> list[str]:
    return [name for name, each in resources.items() if each["Type"] in types]
