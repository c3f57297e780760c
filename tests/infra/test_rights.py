"""Which queues, keys and mails roles may write to, by settings and tags: a table of answers.

That a role may do nothing that its function does not call, and lacks nothing, is proven in
test_roles; what tags, names and other conditions make of it stands in rights.txt.
"""

from __future__ import annotations

import json
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
    [cell.strip() for cell in line.split("|")]
    for line in Path(__file__).with_name("rights.txt").read_text().splitlines()
    if not line.startswith("#")
]
ACTIONS = {
    "SET": ("sqs:SetQueueAttributes",),
    "CREATE": ("sqs:CreateQueue",),
    "MOVE": MESSAGE_ACTIONS,
    "TAKE": tuple({*MESSAGE_ACTIONS} - {"sqs:SendMessage"}),
    "KEY": ("kms:Decrypt", "kms:GenerateDataKey"),
    "MAIL": ("ses:SendEmail", "ses:SendRawEmail"),
}
_OBSERVE, _PROPOSE = (
    {symptom.name: mode for symptom in CATALOGUE if symptom.steps}
    for mode in ("observe", "propose")
)
ON_CALL = f"arn:aws:sns:{REGION}:{ACCOUNT}:on-call"
FURTHER: dict[str, dict[str, Any]] = {
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
    if name in FURTHER:
        return template_with({"queues": ["orders"], **FURTHER[name]})
    return template_of(name.replace("_", " "))


def _arn(template: Template, name: str) -> str:
    if name.startswith("@"):
        start, slash, within = name[1:].partition("/")
        found = next(each for each in template.raw["Resources"] if each.startswith(start))
        return f"arn:{found}{slash}{within}"
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
        given = dict(each.split("=", 1) for each in call.split() if each != "-")
        tags = {key: value for key, value in given.items() if key.startswith("mendq")}
        keys = {key: value for key, value in given.items() if key not in tags}
        statements = template.statements(f"{role}Role")
        for one in ACTIONS.get(action, (action,)):
            answer = decision(statements, one, _arn(template, name), tags, keys)
            wanted = answer != "Allow" if expected == "not Allow" else answer == expected
            assert wanted, (setting, role, one, name, call, answer)


NAMED = ["orders", "billing-*"]
# Each mode by each way, and either way alone; every pair would be as many stacks.
PAIRS = [
    *(("observe", each) for each in MODE_BY_TEXT),
    *(("propose", "observe"), ("heal", "propose"), ("propose", "heal")),
]
SOME_NAMES = ("orders", "orders-eu", "billing", "billing-eu.fifo", "others", "orders-quarantine")


@cache
def _statements(mode: str, raised: str) -> dict[str, list[dict[str, Any]]]:
    template = template_with({"mode": mode, "tagMayRaiseTo": raised, "queues": NAMED})
    return {role: template.statements(f"{role}Role") for role in WRITERS}


@settings(deadline=None)
@given(
    modes=st.sampled_from(PAIRS),
    name=st.sampled_from(SOME_NAMES),
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
    consent = Consent(MODE_BY_TEXT[mode], MODE_BY_TEXT[raised], tuple(NAMED))
    is_written = consent.mode_of(name, tags) in WRITING_MODES
    assert not is_written or raised != "observe" or consent.mode_of(name, {}) is not None
    may_move = is_written and not is_redrive_off(tags)
    for role, action, expected in (
        *((each, "sqs:SetQueueAttributes", is_written) for each in WRITERS if each != "Redrive"),
        *(("Redrive", each, may_move) for each in (*ACTIONS["SET"], *ACTIONS["TAKE"])),
    ):
        answer = decision(_statements(mode, raised)[role], action, f"{QUEUE_ARNS}{name}", tags)
        assert (answer == "Allow") is expected, (role, action, answer)


@pytest.mark.parametrize("settings", SETTINGS)
def test_no_role_may_write_mendqs_own_queues(settings: str) -> None:
    """All that the template has: a new one is forbidden or fails here."""
    template = template_of(settings)
    own = template.all("AWS::SQS::Queue")
    assert any("Probe" in each for each in own)
    for role, queue, tags in product(WRITERS, own, ({}, {"mendq": "heal"})):
        taken = MESSAGE_ACTIONS if role == "Redrive" else ()
        for action in (*list_write_actions(STEP_CLASSES), *taken):
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
    inline, managed = sizes["Policy"].values(), sizes["ManagedPolicy"].values()
    assert max(map(sum, inline)) <= 10_240
    assert managed
    assert max(map(max, managed)) <= 6_144
    assert max(map(len, managed)) <= 10
