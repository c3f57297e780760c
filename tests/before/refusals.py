"""Every reason not to act: which codes there are, who says them when, and who is asked first."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any

from mendq import catalogue
from mendq.cases.view import AttributeRecord, CaseStoreView, Reach, Write
from mendq.catalogue import examples
from mendq.catalogue.visibility_timeout_too_short import VISIBILITY_TIMEOUT_TOO_SHORT
from mendq.heal import guardrails
from mendq.heal.guardrails import Home, Situation
from mendq.model.case import State, opened
from mendq.model.evidence import Evidence, Sighting
from mendq.model.limits import DRILL_TAG, Limits, Mode, Timing
from mendq.model.plan import Plan
from mendq.model.steps import HELD, AttributeStep, Owner, RedriveMessages, SetVisibilityTimeout
from tests.before.answers import refusal_of
from tests.before.further_refusals import BETWEEN, approved_after, by_facts
from tests.before.operator_accounts import scrubbed
from tests.heal.conftest import Account, moto_account
from tests.heal.operators import case_of, fail, move, outcomes, say, undo

PRODUCT = Path(catalogue.__file__).parents[1]
RUNBOOKS = PRODUCT.parent / "docs" / "runbooks"
NOW = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
OWN = "arn:aws:iam::123456789012:role/mendq-heal-us-east-1"
HOME = Home("123456789012", "us-east-1", (OWN,))
STEP = SetVisibilityTimeout(30, 45)
VISIBILITY = STEP.attribute
# What makes a refusal, and the place of its code among the arguments.
MAKERS = {
    **dict.fromkeys(("Refusal", "declined", "refused", "_declined"), 0),
    **dict.fromkeys(("Ignore", "Retry", "Refuse", "Escalate", "Declined", "Refused"), 0),
    "_condition": 2,
}
_TABLE_ROW = re.compile(r"^\| ((?:`[a-z_]+`(?:, )?)+) \|", re.MULTILINE)


def record() -> Any:
    """All of it."""
    return {
        "codes_in_the_code": sorted(_codes()),
        "codes_in_the_runbooks": _explained(),
        "guardrails": _guardrails(),
        "first_of_two": {
            "case": dict(_first_of_two(CASE, lambda each: _on_case(**each))),
            "plan": dict(_first_of_two(PLAN, lambda each: _on_plan(**each))),
        },
        "by_facts": by_facts(),
        "approved_after": {
            name: _operated(approved_after(between)) for name, between in BETWEEN.items()
        },
        "heal": {name: _healed(way) for name, way in HEALED.items()},
        "operators": {name: _operated(way) for name, way in OPERATED.items()},
    }


def _codes() -> Iterator[str]:
    """The codes that are spelled out where a refusal is made."""
    found: set[str] = set()
    for file in PRODUCT.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                place = MAKERS.get(node.func.id, len(node.args))
                given = node.args[place : place + 1]
                found.update(str(each.value) for each in given if isinstance(each, ast.Constant))
    yield from found


def _explained() -> list[str]:
    texts = (each.read_text() for each in RUNBOOKS.glob("*.md"))
    rows = (row for text in texts for row in _TABLE_ROW.findall(text))
    return sorted({code for row in rows for code in re.findall(r"[a-z_]+", row)})


def _evidence(*seconds_ago: float) -> Evidence:
    return Evidence.of(
        Sighting(NOW - timedelta(seconds=each), f"e{n}", "r", "p")
        for n, each in enumerate(seconds_ago)
    )


def _open_case() -> Any:
    return opened(
        State.APPLIED,
        queue_arn=examples.QUEUE_ARN,
        symptom="made_up",
        reason="because",
        evidence=_evidence(1, 2, 3),
        steps=(STEP,),
        now=NOW,
        actor="heal",
    )


def _written(*hours_ago: float) -> tuple[Write, ...]:
    return tuple(Write(NOW - timedelta(hours=each), "20", "30") for each in hours_ago)


CASE: Mapping[str, Mapping[str, Any]] = {
    "frozen": {"frozen": "an incident"},
    "no fresh call": {"fresh_calls": 0},
    "too few calls": {"evidence": _evidence(1, 2)},
    "too far apart": {"evidence": _evidence(1, 2, 700)},
    "a case is open": {"case": _open_case()},
    "claimed": {
        "attributes": {
            VISIBILITY: AttributeRecord(
                claim_owner="another", claim_until=NOW + timedelta(seconds=1)
            )
        }
    },
}
_VIEW = ("frozen", "case", "attributes")
PLAN: Mapping[str, Mapping[str, Any]] = {
    "overridden": {"step": SetVisibilityTimeout(10, 15), "writes": _written(30)},
    "overridden lately": {"overridden_until": NOW + timedelta(seconds=1)},
    "rolled back": {"overridden_until": NOW + timedelta(seconds=1), "owes_a_notification": True},
    "out of bounds": {"step": SetVisibilityTimeout(30, 43_201)},
    "would not rise": {"step": SetVisibilityTimeout(30, 29)},
    "written just now": {"writes": _written(0.49)},
    "written thrice": {"writes": _written(23.9, 12, 0.6)},
    "redriven today": {"step": RedriveMessages(HELD, examples.QUEUE_ARN), "redriven": 3},
    "shown by many": {"queues_with_symptom": 5, "managed_queues": 99},
    "many drills": {"queues_with_symptom": 21, "managed_queues": 99, "is_drill": True},
    "little time": {"remaining_seconds": 14.9},
}


def _situation(view: CaseStoreView, **over: Any) -> Situation:
    usual: dict[str, Any] = {
        "symptom": VISIBILITY_TIMEOUT_TOO_SHORT,
        "facts": examples.queue(),
        "mode": Mode.OBSERVE,
        "evidence": _evidence(1, 2, 3),
        "owner": "me",
        "whose": Owner.HEAL,
        "now": NOW,
        "limits": Limits(),
        "timing": Timing(),
    }
    return Situation(view=view, **{**usual, **over})


def _on_case(**over: Any) -> Any:
    view = CaseStoreView(**{name: over.pop(name) for name in _VIEW if name in over})
    fresh = _evidence(*range(1, over.pop("fresh_calls", 3) + 1)).sightings
    mode = Mode.HEAL if view.frozen else Mode.OBSERVE
    situation = _situation(view, fresh=fresh, mode=mode, **over)
    return guardrails.first_refusal(guardrails.ON_CASE, situation)


def _on_plan(**over: Any) -> Any:
    step: AttributeStep = over.pop("step", STEP)
    names = ("writes", "overridden_until", "owes_a_notification")
    record = AttributeRecord(**{name: over.pop(name) for name in names if name in over})
    if hours_ago := over.pop("redriven", None):
        at = NOW - timedelta(hours=hours_ago)
        record = replace(record, writes=(Write(at, HELD, str(step.after)),))
    view = CaseStoreView(attributes={step.attribute: record})
    arns = frozenset(f"q{n}" for n in range(over.pop("queues_with_symptom", 0)))
    reach = Reach(arns, over.pop("managed_queues", 0))
    tags = {DRILL_TAG: "1"} if over.pop("is_drill", False) else {}
    facts = examples.queue(tags)
    situation = _situation(view, reach=reach, facts=facts, **{"remaining_seconds": 60, **over})
    return guardrails.first_refusal(guardrails.ON_PLAN, situation, Plan((step,), "because"))


def _guardrails() -> dict[str, Any]:
    call = examples.failed_call("DeleteMessage", "MessageNotInflight", "")
    calls: Mapping[str, dict[str, Any]] = {
        "own call": {"principal_arn": OWN},
        "no queue": {"queue_arn": None},
        "another region": {"queue_arn": examples.QUEUE_ARN.replace("us-east-1", "us-east-2")},
        "own call elsewhere": {"principal_arn": OWN, "queue_arn": None},
        "sound": {},
    }
    spreads = [(3, 3), (4, 4), (4, 80), (5, 99), (5, 100), (20, 9_999)]
    return {
        "call": {
            name: refusal_of(guardrails.first_refusal_of_call(replace(call, **over), HOME))
            for name, over in calls.items()
        },
        "case": {name: refusal_of(_on_case(**over)) for name, over in CASE.items()},
        "plan": {name: refusal_of(_on_plan(**over)) for name, over in PLAN.items()},
        "sound": [refusal_of(_on_case()), refusal_of(_on_plan())],
        "many": {
            f"{queues} of {managed}": guardrails.are_many(queues, managed, Limits())
            for queues, managed in spreads
        },
    }


def _first_of_two(
    situations: Mapping[str, Mapping[str, Any]], ask: Callable[[dict[str, Any]], Any]
) -> Iterator[tuple[str, str]]:
    """The code that is told where two speak against it; where both change the same, the second."""
    for one, other in combinations(situations, 2):
        found = ask({**situations[one], **situations[other]})
        yield f"{one} + {other}", found.code if found else "none"


# Heal, on an account with one queue: what is done before, and with which calls.


def _late(account: Account, tag: str | None = "heal", **over: Any) -> dict[str, str]:
    arn = account.queue(tag=tag, VisibilityTimeout="30")
    account.later(seconds=200)
    return account.late_deletes(arn, "a", "b", "c", **over)


def _again(account: Account, **later: float) -> dict[str, str]:
    """The queue fails once more after what was done about it."""
    account.heal(_late(account))
    account.later(**later)
    arn = account.transitions()[-1]["queue_arn"]
    return account.late_deletes(arn, "d", "e", "f")


def _unmanaged(account: Account) -> dict[str, str]:
    return _late(account, tag=None)


def _two_calls(account: Account) -> dict[str, str]:
    every = _late(account)
    return dict(list(every.items())[:2])


def _stale(account: Account) -> dict[str, str]:
    every = _late(account)
    account.later(minutes=61)
    return every


def _of_mendq(account: Account) -> dict[str, str]:
    role = {"sessionContext": {"sessionIssuer": {"arn": OWN}}, "type": "AssumedRole", "arn": OWN}
    return _late(account, userIdentity=role)


def _gone(account: Account) -> dict[str, str]:
    every = _late(account)
    arn = json.loads(next(iter(every.values())))["detail"]["resources"][0]["ARN"]
    account.clients.sqs.delete_queue(QueueUrl=account.url(arn))
    return every


def _just_changed(account: Account) -> dict[str, str]:
    every = _late(account)
    arn = json.loads(next(iter(every.values())))["detail"]["resources"][0]["ARN"]
    account.later(seconds=30)
    account.set_visibility(arn, 31)
    return every


def _overridden(account: Account) -> dict[str, str]:
    account.heal(_late(account))
    arn = account.transitions()[-1]["queue_arn"]
    move(account, case_of(account), "closed")
    account.set_visibility(arn, 33)
    account.later(hours=2)
    return account.late_deletes(arn, "d", "e", "f")


HEALED: Mapping[str, Callable[[Account], dict[str, str]]] = {
    "managed": _late,
    "observed": lambda account: _late(account, tag="observe"),
    "proposed": lambda account: _late(account, tag="propose"),
    "switched off": lambda account: _late(account, tag="off"),
    "not managed": _unmanaged,
    "two calls": _two_calls,
    "calls of an hour ago": _stale,
    "calls of Mendq's own": _of_mendq,
    "no queue": _gone,
    "just changed": _just_changed,
    "fails again at once": lambda account: _again(account, minutes=3),
    "fails again after a day": lambda account: _again(account, days=1),
    "overridden": _overridden,
    "no JSON": lambda _: {"junk": "<html>"},
    "another code": lambda account: _late(account, errorCode="EmptyBatchRequest"),
    "unknown code": lambda account: _late(account, errorCode="Surprise"),
}


def _healed(way: Callable[[Account], dict[str, str]]) -> Any:
    with moto_account() as account:
        bodies = way(account)
        before = len(account.transitions())
        healed = account.heal(bodies)
        return {
            "became": [
                {
                    "symptom": group.symptom.name,
                    "state": outcome.case and outcome.case.state,
                    "refusal": _scrubbed(refusal_of(outcome.refusal)),
                }
                for group, outcome in healed.fixed.items()
            ],
            "refused_calls": sorted(each.code for each in healed.intake.refusals),
            "come_again": len(healed.errors),
            "written_down": [_transition(each) for each in account.transitions()[before:]],
            "notified": {
                severity: [_scrubbed(list(each)) for each in account.pages(severity)]
                for severity in ("urgent", "info")
            },
        }


def _transition(document: Mapping[str, Any]) -> Any:
    return _scrubbed({name: each for name, each in document.items() if name != "at"})


def _scrubbed(value: Any) -> Any:
    return json.loads(scrubbed(json.dumps(value, default=str)))


# Operators: what they say to which case.


def _operated(way: Callable[[Account], Any]) -> Any:
    with moto_account() as account:
        return _scrubbed(dict(way(account)))


def _case_id(account: Account, tag: str = "propose") -> str:
    account.heal(_late(account, tag=tag))
    return case_of(account).case_id


def _said(word: object, tag: str = "propose", **later: float) -> Callable[[Account], Any]:
    def way(account: Account) -> Any:
        case_id = _case_id(account, tag)
        account.later(**later)
        return say(account, word, case_id)

    return way


def _undone(tag: str, *, twice: bool = False) -> Callable[[Account], Any]:
    def way(account: Account) -> Any:
        case_id = _case_id(account, tag)
        if twice:
            undo(account, case_id)
        done = undo(account, case_id)
        return {**done, "outcomes": outcomes(done) if "attributes" in done else {}}

    return way


def _approved_after_a_change(account: Account) -> Any:
    case_id = _case_id(account)
    account.set_visibility(case_of(account).queue_arn, 40)
    return say(account, "approve", case_id)


def _failing_again(account: Account) -> Any:
    case_id = _case_id(account, "heal")
    fail(account, case_of(account).queue_arn, "again")
    return say(account, "close", case_id)


OPERATED: Mapping[str, Callable[[Account], Any]] = {
    **{f"{word} a proposal": _said(word) for word in ("approve", "decline", "close")},
    **{f"{word} an applied one": _said(word, "heal") for word in ("approve", "decline", "close")},
    "approve too late": _said("approve", days=2),
    "a word that is none": _said("perhaps"),
    "no such case": lambda account: say(account, "approve", "nothing-like-it"),
    "no id": lambda account: say(account, "approve", ""),
    "approve after a change": _approved_after_a_change,
    "close what is at work": _failing_again,
    "roll back": _undone("heal"),
    "roll back twice": _undone("heal", twice=True),
    "roll back a proposal": _undone("propose"),
    "roll back no case": lambda account: undo(account, "nothing-like-it"),
}
