"""How the case store's items look: their keys, and the way to values and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from mendq.aws.errors import CaseStoreUnreadable
from mendq.cases.attribute_record import AttributeRecord, AttributeWrite
from mendq.cases.view import CaseStoreView, HoldUp
from mendq.model.case import Case, Severity
from mendq.model.evidence import Evidence, Sighting, to_text
from mendq.notifications.sent import NotificationRecord

ACCOUNT = "account"
# In the freeze's item: each freeze as `AT BY REASON`, so that one adds to another.
FREEZES, NO_REASON = "freezes", "no reason given"
# What values of any kind may raise where a reader of ours expects another.
DECODE_ERRORS = (
    *(ArithmeticError, AttributeError, LookupError, OSError, RecursionError),
    *(TypeError, ValueError),
)
# What stands in a page's item until it is sent.
NOTIFICATION_TEXTS = ("subject", "body", "news", "about", "team")
Record = TypeVar("Record")
Item = Mapping[str, Any]
Key = dict[str, dict[str, str]]


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn whatever an item that is none of ours raises into CaseStoreUnreadable."""
    try:
        yield
    except DECODE_ERRORS as error:
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


def to_attribute_value(value: Any) -> Mapping[str, Any]:
    """A value as DynamoDB has it; what is in its form already stays as it is."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, datetime):
        return {"N": str(int(value.timestamp()))}
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, int):
        return {"N": str(value)}
    return {"S": value} if isinstance(value, str) else {"SS": sorted(value)}


def fields(**values: Any) -> dict[str, Any]:
    """Attributes of an item; what is None has none."""
    return {name: to_attribute_value(value) for name, value in values.items() if value is not None}


def as_json(value: Any) -> str:
    """A value of ours in one attribute."""
    plain = msgspec.to_builtins(value, builtin_types=(datetime,))
    return json.dumps(plain, default=to_text, sort_keys=True)


def read_moment(number: Mapping[str, str]) -> datetime:
    return datetime.fromtimestamp(int(number["N"]), UTC)


def text_in(item: Item, name: str, otherwise: str = "") -> str:
    return str(item.get(name, {}).get("S", otherwise))


def texts_in(item: Item, name: str) -> list[str]:
    return list(item.get(name, {}).get("SS", []))


def json_in(item: Item, name: str, kind: Any, otherwise: str = "null") -> Any:
    """The value of that kind in one attribute, as `as_json` writes it."""
    return msgspec.json.decode(text_in(item, name, otherwise), type=kind)


# By the type that a field is declared with.
_READ_AS: Mapping[str, Callable[[Any], Any]] = {
    "bool": lambda attribute: attribute["BOOL"],
    "datetime": read_moment,
    "int": lambda attribute: int(attribute["N"]),
    "str": lambda attribute: attribute["S"],
}


def record_in(kind: type[Record], item: Item, **given: Any) -> Record:
    """A record whose fields the attributes are named after; those `given` were read otherwise."""
    for name, declared in kind.__annotations__.items():
        if name in item and name not in given:
            given[name] = _READ_AS[str(declared).removesuffix(" | None")](item[name])
    return kind(**given)


class Freeze(msgspec.Struct, frozen=True):
    """`by` and `at` are empty where somebody put the item there without `mendq`."""

    reason: str
    by: str = ""
    at: str = ""

    def __str__(self) -> str:
        by = f" by {self.by} at {self.at}" if self.by else ""
        return f"frozen{by}: {self.reason}"


def read_freezes(item: Item) -> list[Freeze]:
    """All that hold, in their order: whatever an item says, it freezes."""
    said = (f"{each}  ".split(" ", 2) for each in sorted(texts_in(item, FREEZES)))
    freezes = [Freeze(reason.strip(), by, at) for at, by, reason in said]
    if item and ("reason" in item or not freezes):
        freezes.append(Freeze(text_in(item, "reason") or NO_REASON))
    return freezes


def spread_key(word: str) -> Key:
    return key(ACCOUNT, f"spread#{word}")


def look_keys(
    queue_arn: str, symptom: str, attributes: Sequence[str], spread: str
) -> tuple[Key, ...]:
    """The items that `view_of` takes, in its order; `spread` where that is looked at too."""
    return (
        freeze_key(),
        case_key(queue_arn, symptom),
        evidence_key(queue_arn, symptom),
        notification_key(queue_arn, symptom),
        *(attribute_key(queue_arn, each) for each in attributes),
        *([spread_key(spread)] if spread else []),
    )


def read_view(items: Sequence[Item], attributes: Sequence[str]) -> CaseStoreView:
    """The view that the items of `look_keys`, each possibly empty, give; read within `reading`."""
    freeze, case, evidence, notification, *others = items
    records, spread = others[: len(attributes)], others[len(attributes) :]
    return CaseStoreView(
        frozen="; ".join(each.reason for each in read_freezes(freeze)) if freeze else None,
        case=read_case(case),
        hold_up=json_in(case, "held_up", HoldUp | None),
        failures=Evidence.of(map(Sighting.from_text, json_in(case, "failures", list[str], "[]"))),
        evidence=read_evidence(evidence),
        attributes=dict(zip(attributes, map(read_attribute_record, records), strict=True)),
        notification=read_notification(notification),
        spread=next(iter(spread), None),
    )


def read_evidence(item: Item) -> Evidence:
    return Evidence.of(map(Sighting.from_text, texts_in(item, "sightings")))


def read_case(item: Item) -> Case | None:
    """The case in an item that holds a transition."""
    if "document" not in item:
        return None
    document = json.loads(item["document"]["S"])
    opened_at = read_moment(item["opened_at"]) if "opened_at" in item else None
    return Case.from_document(document, text_in(item, "code"), opened_at)


def failures_text(failures: Evidence) -> str:
    return json.dumps([each.to_text() for each in failures.sightings])


def notification_fields(page: NotificationRecord) -> dict[str, Any]:
    """A page's item without its key."""
    texts = {each: getattr(page, each) for each in NOTIFICATION_TEXTS} if page.body else {}
    since = (page.since or page.at) if page.body else None
    said = as_json(page.announced)
    return fields(at=page.at, urgent=page.urgent, announced=said, since=since, **texts)


def read_notification(item: Item) -> NotificationRecord | None:
    if not item:
        return None
    announced = json_in(item, "announced", dict[str, datetime])
    return record_in(NotificationRecord, item, announced=announced)


def record_fields(record: AttributeRecord) -> dict[str, Any]:
    """An attribute's item without its key; the claim on it has ended."""
    return fields(
        writes=as_json(record.writes),
        person_value=record.person_value,
        owes_a_notification=record.owes_a_notification or None,
        overridden_until=record.overridden_until,
        queue_created_at=record.queue_created_at,
    )


def read_attribute_record(item: Item) -> AttributeRecord:
    """Return the record in an attribute's item, which may be empty; read within `reading`."""
    writes = json_in(item, "writes", tuple[AttributeWrite, ...], "[]")
    intent = read_case({"document": item["intent"]}) if "intent" in item else None
    return record_in(AttributeRecord, item, writes=writes, intent=intent)
