"""A claim outlives the Lambda that holds it, and ends before the intake gives a message up.

So no two ever write one attribute, and a claim that a dying Lambda left behind costs no message.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from mendq.cases import transactions as case_store_claims
from mendq.redrive import store
from tests.infra.synthesized import QUEUE_ARNS, Template
from tests.infra.template_rules.batches_have_a_window import MAPPING, read_queue
from tests.infra.template_rules.rule import Findings, Resources, Rule, as_list, properties

# A call of the holder may still be on its way when Lambda ends it.
ON_THE_WAY_SECONDS = 15
CLAIMS = {
    "sqs:SetQueueAttributes": case_store_claims.CLAIM_SECONDS,
    "sqs:CreateQueue": case_store_claims.CLAIM_SECONDS,
    "sqs:SendMessage": store.CLAIM_SECONDS,
}
LONGEST = max(CLAIMS.values())


def findings(template: Template) -> Findings:
    for name, seconds, claim in _writers(template):
        if seconds + ON_THE_WAY_SECONDS >= claim:
            yield f"{name} may write for {seconds} s under a claim of {claim} s"
    for name, mapping in template.all(MAPPING).items():
        queue = read_queue(template, mapping["Properties"])
        patience = queue["VisibilityTimeout"] * queue["RedrivePolicy"]["maxReceiveCount"]
        if patience <= LONGEST:
            yield f"{name} gives up after {patience} s, and a claim may last {LONGEST} s"


def _writers(template: Template) -> Iterator[tuple[str, int, int]]:
    """The Lambdas whose roles may write queues, how long each may run, and its shortest claim."""
    for name, function in template.all("AWS::Lambda::Function").items():
        role = function["Properties"]["Role"].removeprefix("arn:")
        claims = [CLAIMS[each] for each in _written_by(template, role) if each in CLAIMS]
        if claims:
            yield name, function["Properties"]["Timeout"], min(claims)


def _written_by(template: Template, role: str) -> Iterator[str]:
    """The actions that a role is allowed on more than our own queues, which nobody claims."""
    own = {f"{QUEUE_ARNS}{name}" for name in template.all("AWS::SQS::Queue")}
    for policy in template.all("AWS::IAM::Policy").values():
        if role in policy["Properties"]["Roles"]:
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
                if statement["Effect"] == "Allow" and not own.issuperset(
                    as_list(statement["Resource"])
                ):
                    yield from as_list(statement["Action"])


def _slow(resources: Resources, start: str, seconds: int = LONGEST) -> None:
    properties(resources, "AWS::Lambda::Function", start)["Timeout"] = seconds


def _impatient(resources: Resources) -> None:
    intake = properties(resources, "AWS::SQS::Queue", "IntakeQueue")
    intake["VisibilityTimeout"], intake["RedrivePolicy"]["maxReceiveCount"] = LONGEST // 3, 3


RULE = Rule(
    findings,
    {
        **{
            f"a slow {start}": partial(_slow, start=start)
            for start in ("Heal", "AttachDlq", "RestorePolicy", "Redrive")
        },
        "a rollback that is ended while its call is on the way": lambda found: _slow(
            found, "Rollback", LONGEST - 15
        ),
        "a redrive that is ended while a message is on the way": lambda found: _slow(
            found, "Redrive", store.CLAIM_SECONDS - 15
        ),
        "an impatient intake": _impatient,
    },
)
