"""How the case store's items look: their keys, and the way to values and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from mendq.aws.errors import CaseStoreUnreadable
from mendq.cases.view import AttributeRecord, CaseStoreView, HoldUp, Spread, Transition, Write
from mendq.model.case import Case, Severity
from mendq.model.evidence import Evidence, Sighting, to_text
from mendq.notifications.configuration import Configuration, Known
from mendq.notifications.sent import NotificationRecord

ACCOUNT = "account"
# The transitions, of this case and of those before it, that may not lie in the case bucket yet.
UNFILED = "unfiled"
# What values of any kind may raise where a reader of ours expects another.
_NOT_OURS = (
    *(ArithmeticError, AttributeError, LookupError, OSError, RecursionError),
    *(TypeError, ValueError),
)
# What stands in a page's item until it is sent.
PAGE_TEXTS = ("subject", "body", "news", "about")
Item = Mapping[str, Any]
Key = dict[str, dict[str, str]]


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn whatever an item that is none of ours raises into CaseStoreUnreadable."""
    try:
        yield
    except _NOT_OURS as error:
        raise CaseStoreUnreadable(f"{what}: {error!r}") from error


def key(partition: str, sort: str) -> Key:
    return {"pk": {"S": partition}, "sk": {"S": sort}}


def transition_key(case_id: str, n: int) -> Key:
    return key(f"case#{case_id}", f"{n:06}")


def freeze_key() -> Key:
    return key(ACCOUNT, "freeze")


def case_key(queue_arn: str, symptom: str) -> Key:
    return key(queue_arn, f"case#{symptom}")


def evidence_key(queue_arn: str, symptom: str) -> Key:
    return key(queue_arn, f"evidence#{symptom}")


def notification_key(queue_arn: str, symptom: str) -> Key:
    """Of a mass symptom, `queue_arn` is `ACCOUNT`."""
    return key(queue_arn, f"page#{symptom}")


def notifications_key(severity: Severity, now: datetime) -> Key:
    return key(ACCOUNT, f"pages#{severity}#{now:%Y-%m-%dT%H}")


def attribute_key(queue_arn: str, attribute: str) -> Key:
    return key(queue_arn, f"attribute#{attribute}")


def snapshot_key(case: Case) -> Key:
    return key(case.queue_arn, f"snapshot#{case.case_id}#{case.n}")


def epoch(moment: datetime) -> dict[str, str]:
    return {"N": str(int(moment.timestamp()))}


def stored(value: Any) -> Mapping[str, Any]:
    """A value as DynamoDB has it; what is in its form already stays as it is."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, datetime):
        return epoch(value)
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, int):
        return {"N": str(value)}
    return {"S": value} if isinstance(value, str) else {"SS": sorted(value)}


def fields(**values: Any) -> dict[str, Any]:
    """Attributes of an item; what is None has none."""
    return {name: stored(value) for name, value in values.items() if value is not None}


def moment_of(number: Mapping[str, str]) -> datetime:
    return datetime.fromtimestamp(int(number["N"]), UTC)


def moment_in(item: Item, name: str) -> datetime | None:
    return moment_of(item[name]) if item.get(name) else None


def text_in(item: Item, name: str, otherwise: str = "") -> str:
    return str(item.get(name, {}).get("S", otherwise))


def texts_in(item: Item, name: str) -> list[str]:
    return list(item.get(name, {}).get("SS", []))


def look_keys(queue_arn: str, symptom: str, attributes: Sequence[str]) -> tuple[Key, ...]:
    """The items that `view_of` takes, in its order."""
    return (
        freeze_key(),
        case_key(queue_arn, symptom),
        evidence_key(queue_arn, symptom),
        notification_key(queue_arn, symptom),
        key(queue_arn, "configuration"),
        *(attribute_key(queue_arn, each) for each in attributes),
    )


def view_of(items: Sequence[Item], attributes: Sequence[str]) -> CaseStoreView:
    """The view that the items of `look_keys`, each possibly empty, give; read within `reading`."""
    freeze, case, evidence, page, configuration, *records = items
    return CaseStoreView(
        frozen=text_in(freeze, "reason", "no reason given") if freeze else None,
        case=case_of(case),
        unfiled=_unfiled_of(case),
        hold_up=_hold_up_of(case),
        failures=Evidence.of(map(Sighting.from_text, json.loads(text_in(case, "failures", "[]")))),
        evidence=evidence_of(evidence),
        attributes=dict(zip(attributes, map(_attribute_of, records), strict=True)),
        page=page_of(page),
        known=_known_of(configuration),
    )


def evidence_of(item: Item) -> Evidence:
    return Evidence.of(map(Sighting.from_text, texts_in(item, "sightings")))


def spread_of(item: Item) -> Spread:
    return Spread.from_texts(texts_in(item, "queues"))


def case_of(item: Item) -> Case | None:
    """The case in an item that holds a transition."""
    if "document" not in item:
        return None
    document = json.loads(item["document"]["S"])
    return Case.from_document(document, text_in(item, "code"), moment_in(item, "opened_at"))


def marked(transitions: Iterable[Transition]) -> list[str]:
    """How transitions stand in a set: of which case, the which."""
    return [f"{case_id}#{n:06}" for case_id, n in transitions]


def _unfiled_of(item: Item) -> frozenset[Transition]:
    parted = (each.rpartition("#") for each in texts_in(item, UNFILED))
    return frozenset((case_id, int(n)) for case_id, _, n in parted)


def failures_text(failures: Evidence) -> str:
    return json.dumps([each.to_text() for each in failures.sightings])


def hold_up_text(hold_up: HoldUp) -> str:
    return json.dumps([to_text(hold_up.since), hold_up.code, hold_up.reason])


def _hold_up_of(item: Item) -> HoldUp | None:
    if "held_up" not in item:
        return None
    since, code, reason = json.loads(item["held_up"]["S"])
    return HoldUp(datetime.fromisoformat(since), str(code), str(reason))


def page_fields(page: NotificationRecord) -> dict[str, Any]:
    """A page's item without its key."""
    announced = {news: to_text(when) for news, when in page.announced.items()}
    texts = {each: getattr(page, each) for each in PAGE_TEXTS} if page.body else {}
    since = (page.since or page.at) if page.body else None
    said = json.dumps(announced)
    return fields(at=page.at, urgent=page.urgent, announced=said, since=since, **texts)


def page_of(item: Item) -> NotificationRecord | None:
    if not item:
        return None
    announced = json.loads(item["announced"]["S"])
    return NotificationRecord(
        at=moment_of(item["at"]),
        urgent=item["urgent"]["BOOL"],
        announced={str(news): datetime.fromisoformat(when) for news, when in announced.items()},
        since=moment_in(item, "since"),
        **{each: text_in(item, each) for each in PAGE_TEXTS},
    )


def configuration_fields(now: Configuration, known_until: datetime) -> dict[str, Any]:
    """A configuration's item without its key."""
    earlier = now.earlier and [to_text(now.earlier.at), dict(now.earlier.attributes)]
    return fields(
        at=now.at,
        since=now.since,
        attributes=json.dumps(dict(now.attributes), sort_keys=True),
        earlier=json.dumps(earlier, sort_keys=True) if earlier else None,
        expires_at=known_until,
    )


def _known_of(item: Item) -> Configuration | None:
    if not item:
        return None
    earlier = json.loads(text_in(item, "earlier", "null"))
    return Configuration(
        at=moment_of(item["at"]),
        attributes=json.loads(item["attributes"]["S"]),
        since=moment_of(item["since"]),
        earlier=Known(datetime.fromisoformat(earlier[0]), earlier[1]) if earlier else None,
    )


def writes_text(writes: tuple[Write, ...]) -> str:
    return json.dumps([[to_text(each.at), each.before, each.after] for each in writes])


def record_fields(record: AttributeRecord) -> dict[str, Any]:
    """An attribute's item without its key; the claim on it has ended."""
    return fields(
        writes=writes_text(record.writes),
        person_value=record.person_value,
        owes_a_notification=record.owes_a_notification or None,
        overridden_until=record.overridden_until,
        queue_created_at=record.queue_created_at,
    )


def _attribute_of(item: Item) -> AttributeRecord:
    texts = {each: item.get(each, {}).get("S") for each in ("person_value", "claim_owner")}
    names = ("overridden_until", "claim_until", "intent_modified_at", "queue_created_at")
    return AttributeRecord(
        writes=tuple(
            Write(datetime.fromisoformat(at), str(before), str(after))
            for at, before, after in json.loads(text_in(item, "writes", "[]"))
        ),
        owes_a_notification="owes_a_notification" in item,
        intent=case_of({"document": item["intent"]}) if "intent" in item else None,
        **texts,
        **{each: moment_in(item, each) for each in names},  # type: ignore[arg-type]
    )
