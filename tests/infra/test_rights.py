"""The queues, keys and mail identities that roles may write to, by settings and tags.

test_roles proves that each role has exactly the actions that its function calls. rights.txt lists
how tags, names and other conditions change the decision.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from infra.queue_grants import WRITING_MODES
from mendq.catalogue import CATALOGUE
from mendq.catalogue.dlq.redrive_causes import REDRIVE_TAG, is_redrive_off
from mendq.catalogue.visibility.needed_timeout import MAX_PROCESSING_TAG, MAX_VISIBILITY_TAG
from mendq.model.consent import Consent
from mendq.model.message_calls import MESSAGE_ACTIONS
from mendq.model.mode import MODE_BY_TEXT
from mendq.model.steps import STEP_CLASSES, list_write_actions
from mendq.model.tags import MODE_TAG
from tests.infra.permissions import decision
from tests.infra.synthesized import (
    ACCOUNT,
    CALENDAR,
    QUEUE_ARNS,
    REGION,
    SETTINGS,
    Template,
    template_of,
    template_with,
)

ROWS = [
    re.split(r" *\| *", line.strip())
    for line in Path(__file__).with_name("rights.txt").read_text().splitlines()
    if not line.startswith("#")
]
ACTIONS = {
    "SET": ("sqs:SetQueueAttributes",),
    "CREATE": ("sqs:CreateQueue",),
    "MOVE": MESSAGE_ACTIONS,
    "TAKE": tuple({*MESSAGE_ACTIONS} - {"sqs:SendMessage"}),
    "KEY": ("kms:Decrypt", "kms:GenerateDataKey"),
    "ITEM": ("dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"),
    "DELETE": ("dynamodb:DeleteItem", "dynamodb:BatchWriteItem", "dynamodb:PartiQLDelete"),
    "QUERY": ("dynamodb:Query", "dynamodb:Scan", "dynamodb:BatchGetItem"),
    # Calls that write items without a partition key that IAM sees, or change the table.
    "ANYWHERE": (
        "dynamodb:BatchWriteItem",
        "dynamodb:PartiQLInsert",
        "dynamodb:PartiQLUpdate",
        "dynamodb:PartiQLDelete",
        "dynamodb:UpdateTable",
        "dynamodb:UpdateTimeToLive",
        "dynamodb:DeleteTable",
        "dynamodb:RestoreTableToPointInTime",
    ),
    "MAIL": ("ses:SendEmail", "ses:SendRawEmail"),
}
_FIXABLE_SYMPTOMS = [symptom.name for symptom in CATALOGUE if symptom.steps]
_OBSERVE = dict.fromkeys(_FIXABLE_SYMPTOMS, "observe")
_PROPOSE = dict.fromkeys(_FIXABLE_SYMPTOMS, "propose")
ON_CALL = f"arn:aws:sns:{REGION}:{ACCOUNT}:on-call"
FURTHER_SETTINGS: dict[str, dict[str, Any]] = {
    "autonomous_observing": {"mode": "heal", "tagMayRaiseTo": "heal", "autonomy": _OBSERVE},
    "autonomous_proposing": {"mode": "heal", "autonomy": _PROPOSE},
    "tag_proposing": {"tagMayRaiseTo": "propose"},
    "prefixed": {"trail": {"create": False, "bucket": "our-logs", "prefix": "a/o-abc"}},
    "own_prefixed": {"trail": {"prefix": "logs"}},
    "their_topics": {"notifications": {"topics": {"urgent": ON_CALL, "info": f"{ON_CALL}-info"}}},
}
WRITERS = ("Heal", "AttachDlq", "RestorePolicy", "Redrive", "Rollback")


@cache
def _template(name: str) -> Template:
    if name in FURTHER_SETTINGS:
        return template_with({"queues": ["orders"], **FURTHER_SETTINGS[name]})
    return template_of(name.replace("_", " "))


def _make_arn(template: Template, name: str) -> str:
    if name.startswith("@"):
        start, slash, within = name[1:].partition("/")
        logical_id = next(
            resource_id
            for resource_id in template.raw["Resources"]
            if resource_id.startswith(start)
        )
        return f"arn:{logical_id}{slash}{within}"
    if name.startswith("ses:"):
        return f"arn:aws:ses:{REGION}:{ACCOUNT}:{name.removeprefix('ses:')}"
    if name.startswith("CALENDAR"):
        return name.replace("CALENDAR", CALENDAR)
    return name if name.startswith("arn:") else f"{QUEUE_ARNS}{name}"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: " ".join(row[:3] + row[4:]))
def test_iam_decision_for_each_role_and_action_matches_rights_txt(row: list[str]) -> None:
    settings, roles, actions, names, calls, expected = row
    for setting, role, action, name, call in product(
        settings.split(), roles.split(), actions.split(), names.split(), calls.split(" / ")
    ):
        template = _template(setting)
        context = dict(word.split("=", 1) for word in call.split() if word != "-")
        tags = {key: value for key, value in context.items() if key.startswith("mendq")}
        keys = {key: value for key, value in context.items() if key not in tags}
        statements = template.statements(f"{role}Role")
        for iam_action in ACTIONS.get(action, (action,)):
            answer = decision(statements, iam_action, _make_arn(template, name), tags, keys)
            is_expected = answer != "Allow" if expected == "not Allow" else answer == expected
            assert is_expected, (setting, role, iam_action, name, call, answer)


NAMED_QUEUES = ["orders", "billing-*"]
# Each mode for named and for tagged queues. All pairs would need too many stacks.
MODE_PAIRS = [
    *(("observe", raised) for raised in MODE_BY_TEXT),
    *(("propose", "observe"), ("heal", "propose"), ("propose", "heal")),
]
QUEUE_NAMES = ("orders", "orders-eu", "billing", "billing-eu.fifo", "others", "orders-quarantine")


@cache
def _read_statements(mode: str, raised: str) -> dict[str, list[dict[str, Any]]]:
    template = template_with({"mode": mode, "tagMayRaiseTo": raised, "queues": NAMED_QUEUES})
    return {role: template.statements(f"{role}Role") for role in WRITERS}


@settings(deadline=None)
@given(
    modes=st.sampled_from(MODE_PAIRS),
    name=st.sampled_from(QUEUE_NAMES),
    tags=st.fixed_dictionaries(
        {},
        optional={
            MODE_TAG: st.sampled_from([*MODE_BY_TEXT, "off", "Heal", ""]),
            REDRIVE_TAG: st.sampled_from(["on", "ON", " on", "off", ""]),
            MAX_VISIBILITY_TAG: st.just("43200"),
            MAX_PROCESSING_TAG: st.just("43200"),
        },
    ),
)
@example(("propose", "observe"), "others", {MODE_TAG: "heal", MAX_VISIBILITY_TAG: "43200"})
def test_iam_roles_may_write_exactly_the_queues_that_consent_allows(
    modes: tuple[str, str], name: str, tags: dict[str, str]
) -> None:
    mode, raised = modes
    consent = Consent(MODE_BY_TEXT[mode], MODE_BY_TEXT[raised], tuple(NAMED_QUEUES))
    is_written = consent.mode_of(name, tags) in WRITING_MODES
    assert not is_written or raised != "observe" or consent.mode_of(name, {}) is not None
    may_move = is_written and not is_redrive_off(tags)
    for role, action, expected in (
        *((role, "sqs:SetQueueAttributes", is_written) for role in WRITERS if role != "Redrive"),
        *(("Redrive", action, may_move) for action in (*ACTIONS["SET"], *ACTIONS["TAKE"])),
    ):
        answer = decision(_read_statements(mode, raised)[role], action, f"{QUEUE_ARNS}{name}", tags)
        assert (answer == "Allow") is expected, (role, action, answer)


@pytest.mark.parametrize("settings", SETTINGS)
def test_no_role_may_write_mendqs_own_queues(settings: str) -> None:
    """Every queue of the template is checked, so a new queue must be denied too."""
    template = template_of(settings)
    own_queues = template.all("AWS::SQS::Queue")
    assert any("Probe" in name for name in own_queues)
    for role, queue, tags in product(WRITERS, own_queues, ({}, {"mendq": "heal"})):
        message_actions = MESSAGE_ACTIONS if role == "Redrive" else ()
        for action in (*list_write_actions(STEP_CLASSES), *message_actions):
            statements = template.statements(f"{role}Role")
            assert decision(statements, action, f"{QUEUE_ARNS}{queue}", tags) == "Deny"


def test_iam_policies_for_200_named_queues_stay_below_iams_size_limits() -> None:
    """https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html"""
    names = [f"orders-{number:03}" for number in range(200)]
    template = template_with({"mode": "heal", "queues": names})
    sizes = {kind: defaultdict[str, list[int]](list) for kind in ("Policy", "ManagedPolicy")}
    for kind, of_kind in sizes.items():
        for policy in template.all(f"AWS::IAM::{kind}").values():
            document = json.dumps(policy["Properties"]["PolicyDocument"], separators=(",", ":"))
            for role in policy["Properties"]["Roles"]:
                of_kind[role].append(len(document))
    inline = sizes["Policy"].values()
    managed = sizes["ManagedPolicy"].values()
    assert max(map(sum, inline)) <= 10_240
    assert managed
    assert max(map(max, managed)) <= 6_144
    assert max(map(len, managed)) <= 10
