"""What a trail could log of the same queues: what each choice costs, and what it shows. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cli.cost.calls import COUNTED, Calls
from cli.doctor.selectors import Selector, Trail
from cli.doctor.visibility import LEASE_CALLS, sights
from infra.data_events import DATA_EVENT_NAMES

EVERY_CALL = frozenset(DATA_EVENT_NAMES)
RECEIVES = frozenset({"ReceiveMessage"})
# Who gets no message deletes none and extends no lease.
_NO_CONSUMERS = ": a consumer that is refused its receives makes no other call, so nothing shows it"


@dataclass(frozen=True)
class Choice:
    """A value of `trail.eventNames`, in words."""

    name: str
    event_names: frozenset[str]

    @property
    def setting(self) -> list[str]:
        """As `trail.eventNames` has it: none named is every one."""
        return [] if self.event_names == EVERY_CALL else sorted(self.event_names)

    @property
    def uncounted(self) -> list[str]:
        """Calls that it logs and of which SQS counts nothing."""
        return sorted(self.event_names - COUNTED)

    def dollars(self, calls: Iterable[Calls]) -> float:
        """A month, of the queues that were counted."""
        return sum(each.dollars_a_month(self.event_names) or 0 for each in calls)


ALL_CALLS = Choice("every call", EVERY_CALL)
NO_RECEIVES = Choice("all but receives", EVERY_CALL - RECEIVES)
LEASES = Choice("deletes and leases", LEASE_CALLS)
SENDS = Choice("sends", frozenset(name for name in EVERY_CALL if name.startswith("SendMessage")))
CHOICES = (ALL_CALLS, NO_RECEIVES, LEASES, SENDS)


@dataclass(frozen=True)
class Shown:
    """What is seen of the symptoms that calls show, on these queues; each by its names."""

    wholly: tuple[str, ...]
    in_part: tuple[str, ...]
    blind: tuple[str, ...]

    @classmethod
    def by(cls, trails: Sequence[Trail], queue_arns: Sequence[str]) -> Shown:
        """A symptom counts as the worst of what is seen of it on any of the queues."""
        wholly, in_part, blind = list[str](), list[str](), list[str]()
        for each in sights(trails, queue_arns):
            if not each.is_swept_only and (each.visible or each.partly or each.blind):
                worst = blind if each.blind else in_part if each.partly else wholly
                worst.append(each.symptom)
        return cls(tuple(wholly), tuple(in_part), tuple(blind))

    def document(self) -> dict[str, Any]:
        return {
            "wholly": list(self.wholly),
            "in_part": list(self.in_part),
            "blind": list(self.blind),
        }


def shown_by(choice: Choice, queue_arns: Sequence[str]) -> Shown:
    selector: Selector = {
        "FieldSelectors": [
            {"Field": "eventCategory", "Equals": ["Data"]},
            {"Field": "resources.type", "Equals": ["AWS::SQS::Queue"]},
            {"Field": "eventName", "Equals": sorted(choice.event_names)},
        ]
    }
    return Shown.by([Trail(choice.name, (selector,))], queue_arns)


@dataclass(frozen=True)
class Hidden:
    """What a choice keeps from being seen that a trail of every call shows; each by its name."""

    wholly: tuple[str, ...]
    in_part: tuple[str, ...]
    why: str

    def words(self, spelled: Callable[[str], str] = str) -> str:
        """A sentence; `spelled` writes a symptom's name."""
        wholly, in_part = (", ".join(map(spelled, each)) for each in (self.wholly, self.in_part))
        of = [f"all of {wholly}"] * bool(wholly) + [f"part of {in_part}"] * bool(in_part)
        return f"It hides {', and '.join(of)}{self.why}." if of else "It hides nothing."


def hidden_by(choice: Choice, queue_arns: Sequence[str]) -> Hidden:
    """On these queues, however well the calls that are left show it."""
    left, whole = shown_by(choice, queue_arns), shown_by(ALL_CALLS, queue_arns)
    in_part = tuple(each for each in left.in_part if each not in whole.in_part)
    return Hidden(left.blind, in_part, "" if choice.event_names >= RECEIVES else _NO_CONSUMERS)


def dollars_now(trails: Sequence[Trail], calls: Mapping[str, Calls]) -> float:
    """What the trails' copies cost a month: each that logs a call is billed for its own."""
    return sum(
        each.dollars_a_month(_logged(trail, arn)) or 0
        for trail in trails
        for arn, each in calls.items()
    )


def _logged(trail: Trail, queue_arn: str) -> frozenset[str]:
    return frozenset(name for name in EVERY_CALL if trail.logs(queue_arn, name))
