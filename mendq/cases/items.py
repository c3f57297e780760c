"""How the case store's items look: their keys, and the way back into values."""

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
from mendq.notifications.notification import NotificationRecord
from mendq.notifications.queue_lines import Configuration, Known

ACCOUNT = "account"
# The transitions, of this case and of those before it, that may not lie in the case bucket yet.
UNFILED = "unfiled"
# What values of any kind may raise where a reader of ours expects another.
_NOT_OURS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
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


def changes_key(queue_arn: str, symptom: str) -> Key:
    return key(queue_arn, f"changes#{symptom}")


def notification_key(queue_arn: str, symptom: str) -> Key:
    """Of a mass symptom, `queue_arn` is `ACCOUNT`."""
    return key(queue_arn, f"page#{symptom}")


def notifications_key(severity: Severity, now: datetime) -> Key:
    return key(ACCOUNT, f"pages#{severity}#{now:%Y-%m-%dT%H}")


def configuration_key(queue_arn: str) -> Key:
    return key(queue_arn, "configuration")


def attribute_key(queue_arn: str, attribute: str) -> Key:
    return key(queue_arn, f"attribute#{attribute}")


def spread_key(symptom: str) -> Key:
    return key(ACCOUNT, f"spread#{symptom}")


def snapshot_key(case: Case) -> Key:
    return key(case.queue_arn, f"snapshot#{case.case_id}#{case.n}")


def look_keys(queue_arn: str, symptom: str, attributes: Sequence[str]) -> tuple[Key, ...]:
    """The items that `view_of` takes, in its order."""
    return (
        freeze_key(),
        case_key(queue_arn, symptom),
        evidence_key(queue_arn, symptom),
        notification_key(queue_arn, symptom),
        configuration_key(queue_arn),
        *(attribute_key(queue_arn, each) for each in attributes),
    )


def view_of(items: Sequence[Item], attributes: Sequence[str]) -> CaseStoreView:
    """The view that the items of `look_keys`, each possibly empty, give; read within `reading`."""
    freeze, case, evidence, page, configuration, *records = items
    return CaseStoreView(
        frozen=freeze.get("reason", {}).get("S", "no reason given") if freeze else None,
        case=case_of(case),
        unfiled=unfiled_of(case),
        hold_up=_hold_up_of(case),
        failures=failures_of(case),
        evidence=evidence_of(evidence),
        attributes=dict(zip(attributes, map(_attribute_of, records), strict=True)),
        page=page_of(page),
        known=_known_of(configuration),
    )


def evidence_of(item: Item) -> Evidence:
    return Evidence.of(map(Sighting.from_text, item.get("sightings", {}).get("SS", [])))


def spread_of(item: Item) -> Spread:
    return Spread.from_texts(item.get("queues", {}).get("SS", []))


def page_of(item: Item) -> NotificationRecord | None:
    if not item:
        return None
    announced = json.loads(item["announced"]["S"])
    return NotificationRecord(
        at=moment_of(item["at"]),
        urgent=item["urgent"]["BOOL"],
        announced={str(news): datetime.fromisoformat(when) for news, when in announced.items()},
        **{each: item.get(each, {}).get("S", "") for each in PAGE_TEXTS},
        since=_moment(item.get("since")),
    )


def epoch(moment: datetime) -> dict[str, str]:
    return {"N": str(int(moment.timestamp()))}


def moment_of(number: Mapping[str, str]) -> datetime:
    return datetime.fromtimestamp(int(number["N"]), UTC)


def writes_text(writes: tuple[Write, ...]) -> str:
    return json.dumps([[to_text(each.at), each.before, each.after] for each in writes])


def case_of(item: Item) -> Case | None:
    """The case in an item that holds a transition."""
    if "document" not in item:
        return None
    return Case.from_document(
        json.loads(item["document"]["S"]),
        code=item.get("code", {}).get("S", ""),
        opened_at=_moment(item.get("opened_at")),
    )


def marked(transitions: Iterable[Transition]) -> dict[str, list[str]]:
    """How transitions stand in a set: of which case, the which."""
    return {"SS": sorted(f"{case_id}#{n:06}" for case_id, n in transitions)}


def unfiled_of(item: Item) -> frozenset[Transition]:
    """The transitions that a case's item owes to the case bucket."""
    parted = (each.rpartition("#") for each in item.get(UNFILED, {}).get("SS", []))
    return frozenset((case_id, int(n)) for case_id, _, n in parted)


def failures_of(item: Item) -> Evidence:
    """The newest failed calls since an open case's last transition."""
    return Evidence.of(map(Sighting.from_text, json.loads(item.get("failures", {"S": "[]"})["S"])))


def failures_text(failures: Evidence) -> str:
    return json.dumps([each.to_text() for each in failures.sightings])


def hold_up_text(hold_up: HoldUp) -> str:
    return json.dumps([to_text(hold_up.since), hold_up.code, hold_up.reason])


def _hold_up_of(item: Item) -> HoldUp | None:
    if "held_up" not in item:
        return None
    since, code, reason = json.loads(item["held_up"]["S"])
    return HoldUp(datetime.fromisoformat(since), str(code), str(reason))


def _known_of(item: Item) -> Configuration | None:
    if not item:
        return None
    earlier = json.loads(item["earlier"]["S"]) if "earlier" in item else None
    return Configuration(
        at=moment_of(item["at"]),
        attributes=json.loads(item["attributes"]["S"]),
        since=moment_of(item["since"]),
        earlier=Known(datetime.fromisoformat(earlier[0]), earlier[1]) if earlier else None,
    )


def _attribute_of(item: Item) -> AttributeRecord:
    writes = json.loads(item.get("writes", {}).get("S", "[]"))
    return AttributeRecord(
        person_value=item.get("person_value", {}).get("S"),
        writes=tuple(
            Write(datetime.fromisoformat(at), str(before), str(after))
            for at, before, after in writes
        ),
        overridden_until=_moment(item.get("overridden_until")),
        owes_a_notification="owes_a_notification" in item,
        claim_owner=item.get("claim_owner", {}).get("S"),
        claim_until=_moment(item.get("claim_until")),
        intent=case_of({"document": item["intent"]}) if "intent" in item else None,
        intent_modified_at=_moment(item.get("intent_modified_at")),
        queue_created_at=_moment(item.get("queue_created_at")),
    )


def _moment(number: Mapping[str, str] | None) -> datetime | None:
    return moment_of(number) if number else None
