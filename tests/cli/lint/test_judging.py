"""The catalogue's checks on what is declared: near-misses, findings, and what nobody can say."""

from __future__ import annotations

import inspect
import json
import sys
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.lint.findings import Linted, Severity
from cli.lint.judging import OF_CONFIGURATION, lint
from cli.lint.node import NotATemplate
from cli.lint.reading import read
from cli.lint.stand_ins import Environment
from tests.cli.lint.written import (
    found,
    function,
    letters_to,
    linted,
    not_judged,
    policy,
    queue,
    reads,
    with_policies,
)

KEPT_LONG = {"MessageRetentionPeriod": 1_209_600}
BILL = {"Bill": function(Timeout=10), "BillOrders": reads({"Ref": "Bill"}, "Orders")}
SENDS = {"Effect": "Allow", "Principal": {"Service": "sns.amazonaws.com"}, "Action": "sqs:*"}
BY_NAME = "arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:"
IMPORTED = {"Fn::ImportValue": "elsewhere"}

# As a careful engineer declares them: nothing is to be said of any.
SOUND: dict[str, dict[str, Any]] = {
    "alone": {"Orders": queue()},
    "with letters": {
        "Orders": queue(VisibilityTimeout=60, RedrivePolicy=letters_to("Dead")),
        "Dead": queue(**KEPT_LONG),
        **BILL,
    },
    "two queues, one for the letters of both": {
        "Orders": queue(RedrivePolicy=letters_to("Dead")),
        "Parcels": queue(RedrivePolicy=json.dumps({"maxReceiveCount": 3})),
        "Dead": queue(**KEPT_LONG, RedriveAllowPolicy={"redrivePermission": "allowAll"}),
    },
    "FIFO with FIFO": {
        "Orders": queue(FifoQueue=True, RedrivePolicy=letters_to("Dead")),
        "Dead": queue(FifoQueue=True, QueueName="dead.fifo"),
    },
    "a key of one's own, and a topic": {
        "Orders": queue(KmsMasterKeyId={"Ref": "Key"}),
        "Key": {"Type": "AWS::KMS::Key", "Properties": {}},
        "OrdersPolicy": policy("Orders", SENDS),
    },
    "a mapping that is switched off": {
        "Orders": queue(),
        "Bill": function(Timeout=900),
        "BillOrders": reads({"Ref": "Bill"}, "Orders", Enabled=False),
    },
    "a source that is let in by name": {
        "Orders": queue(QueueName="orders", RedrivePolicy=letters_to("Dead")),
        "Dead": queue(
            **KEPT_LONG,
            RedriveAllowPolicy={
                "redrivePermission": "byQueue",
                "sourceQueueArns": [{"Fn::Sub": f"{BY_NAME}orders"}],
            },
        ),
    },
    "an alias of a function": {
        "Orders": queue(VisibilityTimeout=60, RedrivePolicy=letters_to("Dead")),
        "Dead": queue(**KEPT_LONG),
        "Bill": function(Timeout=10),
        "Live": {"Type": "AWS::Lambda::Alias", "Properties": {"FunctionName": {"Ref": "Bill"}}},
        "BillOrders": reads({"Ref": "Live"}, "Orders"),
    },
    "a stream that a function reads": {
        "Stream": {"Type": "AWS::Kinesis::Stream"},
        "Bill": function(Timeout=900),
        "BillStream": reads({"Ref": "Bill"}, "Stream"),
        "Orders": queue(),
    },
}

# What is wrong, whose it is, and the property to set (or the resource to add) that mends it.
FAULTY: dict[str, tuple[dict[str, Any], tuple[str, str]]] = {
    "no queue for what a function fails at": (
        {"Orders": queue(VisibilityTimeout=60, KmsMasterKeyId={"Ref": "Key"}), **BILL}
        | {"Key": {"Type": "AWS::KMS::Key"}},
        ("Orders", "dead_letter_queue_missing"),
    ),
    "the same, and FIFO": (
        {"Orders": queue(VisibilityTimeout=60, FifoQueue=True), **BILL},
        ("Orders", "dead_letter_queue_missing"),
    ),
    "letters that expire first": (
        {"Orders": queue(RedrivePolicy=letters_to("Dead")), "Dead": queue()},
        ("Dead", "dead_letters_expire_first"),
    ),
    "a source that is kept out": (
        {
            "Orders": queue(QueueName="orders", RedrivePolicy=letters_to("Dead")),
            "Dead": queue(
                **KEPT_LONG,
                RedriveAllowPolicy={"redrivePermission": "byQueue", "sourceQueueArns": ["x"]},
            ),
        },
        ("Dead", "dead_letter_access_refused"),
    ),
    "a source without a name that is kept out": (
        {
            "Orders": queue(RedrivePolicy=letters_to("Dead")),
            "Dead": queue(**KEPT_LONG, RedriveAllowPolicy={"redrivePermission": "denyAll"}),
        },
        ("Dead", "dead_letter_access_refused"),
    ),
    "a service that cannot use the key": (
        {"Orders": queue(KmsMasterKeyId="alias/aws/sqs"), "Tls": policy("Orders", SENDS)},
        ("Orders", "sender_cannot_deliver"),
    ),
    "one receive": (
        {
            "Orders": queue(VisibilityTimeout=60, RedrivePolicy=letters_to("Dead", 1)),
            "Dead": queue(**KEPT_LONG),
            **BILL,
        },
        ("Orders", "too_few_receives"),
    ),
    "one receive, and letters that go to another stack": (
        {
            "Orders": queue(
                VisibilityTimeout=60,
                RedrivePolicy={"deadLetterTargetArn": IMPORTED, "maxReceiveCount": "2"},
            ),
            **BILL,
        },
        ("Orders", "too_few_receives"),
    ),
    "no encryption": (
        {"Orders": queue(SqsManagedSseEnabled=False)},
        ("Orders", "not_encrypted"),
    ),
    "a function that outlasts the lease": (
        {
            "Orders": queue(VisibilityTimeout=9, RedrivePolicy=letters_to("Dead")),
            "Dead": queue(**KEPT_LONG),
            **BILL,
        },
        ("Orders", "lease_expired"),
    ),
    "a lease that a tag asks for": (
        {"Orders": queue(Tags=[{"Key": "mendq:max-processing-seconds", "Value": "60"}])},
        ("Orders", "lease_expired"),
    ),
    "its own letters": (
        {"Orders": queue(RedrivePolicy=letters_to("Orders"))},
        ("Orders", "redrive_cycle"),
    ),
    "another type": (
        {
            "Orders": queue(FifoQueue="true", RedrivePolicy=letters_to("Dead")),
            "Dead": queue(**KEPT_LONG),
        },
        ("Orders", "dead_letter_queue_of_another_type"),
    ),
}
# Which queue is the last, and which is to be of the other type, is for people to say.
IN_WORDS = {"its own letters", "another type"}


@pytest.mark.parametrize("title", SOUND)
def test_nothing_is_found_where_nothing_is_wrong(title: str) -> None:
    assert found(SOUND[title]) == []
    assert not_judged(SOUND[title]) == []


@pytest.mark.parametrize("title", FAULTY)
def test_what_is_wrong_is_found_with_its_place_and_cure(title: str) -> None:
    resources, wanted = FAULTY[title]
    every = linted(with_policies(resources)).findings
    (finding,) = [each for each in every if (each.resource, each.symptom.name) == wanted]
    assert finding.place.path.startswith("Resources.")
    assert finding.place.line == 1
    assert finding.cure
    assert "000000000000" not in json.dumps(finding.document())
    assert "any-region" not in json.dumps(finding.document())


@pytest.mark.parametrize("title", sorted(FAULTY.keys() - IN_WORDS))
def test_the_cure_is_lines_of_a_template_after_which_it_is_found_no_more(title: str) -> None:
    resources, wanted = FAULTY[title]
    resources = with_policies(resources)
    (finding,) = [each for each in linted(resources).findings if each.symptom.name == wanted[1]]
    mended = _cured(resources, wanted[0], finding.cure)
    assert wanted[1] not in [each.symptom.name for each in linted(mended).findings]


def _cured(resources: dict[str, Any], name: str, cure: tuple[str, ...]) -> dict[str, Any]:
    own = resources[name]
    left_out = {line.split()[2] for line in cure if line.startswith("# leave ")}
    properties = {key: each for key, each in own["Properties"].items() if key not in left_out}
    new = {}
    for key, each in (yaml.safe_load("\n".join(cure)) or {}).items():
        if isinstance(each, dict) and "Type" in each:
            new[key] = each
        elif key == "maxReceiveCount":
            properties["RedrivePolicy"] = {**properties["RedrivePolicy"], key: each}
        else:
            properties[key] = each
    return {**resources, **new, name: {**own, "Properties": properties}}


def test_every_check_of_configuration_has_a_template_that_shows_it() -> None:
    shown = {symptom for _, (_, symptom) in FAULTY.values()} | {"tls_not_enforced"}
    assert {each.name for each in OF_CONFIGURATION} <= shown


def test_a_queue_without_a_policy_gets_one_that_refuses_calls_without_tls() -> None:
    resources = {"Orders": queue()}
    (finding,) = linted(resources).findings
    assert (finding.symptom.name, finding.severity) == ("tls_not_enforced", Severity.WARNING)
    mended = _cured(resources, "Orders", finding.cure)
    assert linted(mended).findings == []


def test_a_policy_without_it_gets_a_statement_beside_its_own() -> None:
    resources = {"Orders": queue(), "Tls": policy("Orders", SENDS)}
    del resources["Tls"]["Properties"]["PolicyDocument"]["Statement"][0]
    (finding,) = linted(resources).findings
    assert finding.place.path == "Resources.Tls.Properties.PolicyDocument"
    (statement,) = yaml.safe_load("\n".join(finding.cure))["PolicyDocument"]["Statement"]
    resources["Tls"]["Properties"]["PolicyDocument"]["Statement"].append(statement)
    assert linted(resources).findings == []


def test_where_work_outlasts_the_lease_is_an_error_and_where_aws_advises_more_a_warning() -> None:
    def lease(seconds: int) -> list[tuple[str, tuple[str, ...]]]:
        resources = {
            "Orders": queue(VisibilityTimeout=seconds, RedrivePolicy=letters_to("Dead")),
            "Dead": queue(**KEPT_LONG),
            "Bill": function(Timeout=10),
            "BillOrders": reads({"Ref": "Bill"}, "Orders", MaximumBatchingWindowInSeconds=5),
        }
        every = linted(with_policies(resources)).findings
        return [(each.severity.value, each.cure) for each in every]

    cure = ("VisibilityTimeout: 65",)
    assert [lease(14), lease(15), lease(64), lease(65)] == [
        [("error", cure)],
        [("warning", cure)],
        [("warning", cure)],
        [],
    ]


def test_a_circle_is_said_of_each_in_it() -> None:
    resources = {
        "A": queue(**KEPT_LONG, RedrivePolicy=letters_to("B")),
        "B": queue(**KEPT_LONG, RedrivePolicy=letters_to("A")),
    }
    assert found(resources) == [("A", "redrive_cycle"), ("B", "redrive_cycle")]


@pytest.mark.parametrize(
    ("sender", "target", "is_found"),
    [
        ("topic.fifo", "Standard", True),
        ("topic", "Fifo", True),
        ("topic.fifo", "Fifo", False),
        ("topic", "Standard", False),
        ("rule", "Fifo", True),
        ("rule", "Standard", False),
    ],
)
def test_what_topics_and_rules_cannot_deliver_goes_to_a_queue_of_their_kind(
    sender: str, target: str, *, is_found: bool
) -> None:
    arn = {"Fn::GetAtt": [target, "Arn"]}
    senders = {
        "Topic": {"Type": "AWS::SNS::Topic", "Properties": {"FifoTopic": "fifo" in sender}},
        "Sender": {
            "Type": "AWS::SNS::Subscription",
            "Properties": {
                "TopicArn": {"Ref": "Topic"},
                "RedrivePolicy": {"deadLetterTargetArn": arn},
            },
        },
    }
    if sender == "rule":
        target_of_it = {"Id": "x", "DeadLetterConfig": {"Arn": arn}}
        senders = {
            "Sender": {"Type": "AWS::Events::Rule", "Properties": {"Targets": [target_of_it]}}
        }
    resources = {"Standard": queue(), "Fifo": queue(FifoQueue=True), **senders}
    wanted = [("Sender", "dead_letter_queue_of_another_type")] if is_found else []
    assert found(resources) == wanted


UNKNOWN: dict[str, tuple[dict[str, Any], str, str]] = {
    "an attribute that is imported": (
        {"Orders": queue(KmsMasterKeyId=IMPORTED, SqsManagedSseEnabled=False)},
        "Resources.Orders.Properties.KmsMasterKeyId",
        "Fn::ImportValue: imported from another stack",
    ),
    "a lease that is a parameter without default": (
        {"Orders": queue(VisibilityTimeout={"Ref": "Open"}, RedrivePolicy=letters_to("Dead"))}
        | {"Dead": queue(**KEPT_LONG), **BILL},
        "Resources.Orders.Properties.VisibilityTimeout",
        "the parameter Open has no default",
    ),
    "a lease that is no number": (
        {"Orders": queue(VisibilityTimeout="soon", RedrivePolicy=letters_to("Dead"))}
        | {"Dead": queue(**KEPT_LONG), **BILL},
        "Resources.Orders.Properties.VisibilityTimeout",
        "it is no whole number",
    ),
    "a redrive policy that a condition decides": (
        {"Orders": queue(VisibilityTimeout=60, RedrivePolicy={"Fn::If": ["x", {}, {}]}), **BILL},
        "Resources.Orders.Properties.RedrivePolicy",
        "Fn::If: a condition decides it",
    ),
    "a dead-letter queue that is elsewhere": (
        {
            "Orders": queue(
                RedrivePolicy={
                    "deadLetterTargetArn": {"Fn::Sub": f"{BY_NAME}dead"},
                    "maxReceiveCount": 5,
                }
            )
        },
        "Resources.Orders.Properties.RedrivePolicy",
        "the template does not declare arn:aws:sqs:${AWS::Region}:${AWS::AccountId}:dead",
    ),
    "a dead-letter queue of a type that nobody knows": (
        {
            "Orders": queue(FifoQueue=True, RedrivePolicy=letters_to("Dead")),
            "Dead": queue(FifoQueue={"Ref": "Open"}),
        },
        "Resources.Orders.Properties.RedrivePolicy",
        "the parameter Open has no default",
    ),
    "the retention of a source": (
        {
            "Orders": queue(MessageRetentionPeriod=IMPORTED, RedrivePolicy=letters_to("Dead")),
            "Dead": queue(),
        },
        "Resources.Dead",
        "Fn::ImportValue: imported from another stack",
    ),
    "a function of another stack": (
        {"Orders": queue(RedrivePolicy=letters_to("Dead")), "Dead": queue(**KEPT_LONG)}
        | {"BillOrders": reads(IMPORTED, "Orders")},
        "Resources.BillOrders",
        "how long its function may run: Fn::ImportValue: imported from another stack",
    ),
    "a timeout that is no number": (
        {"Orders": queue(RedrivePolicy=letters_to("Dead")), "Dead": queue(**KEPT_LONG)}
        | {"Bill": function(Timeout="1e3"), "BillOrders": reads({"Ref": "Bill"}, "Orders")},
        "Resources.BillOrders",
        "how long its function may run: it is no whole number",
    ),
    "a mapping that a condition decides": (
        {
            "Orders": queue(),
            "Bill": function(Timeout=900),
            "BillOrders": {**reads({"Ref": "Bill"}, "Orders"), "Condition": "IsProd"},
        },
        "Resources.BillOrders",
        "a condition decides whether it reads Orders",
    ),
    "a policy that a condition decides": (
        {"Orders": queue(), "Tls": policy("Orders", Condition="IsProd")},
        "Resources.Tls.Properties.PolicyDocument",
        "a condition decides whether it has this policy",
    ),
    "two policies": (
        {"Orders": queue(), "One": policy("Orders"), "Two": policy("Orders")},
        "Resources.Two.Properties.PolicyDocument",
        "One and Two both set it, and SQS keeps one",
    ),
    "a denial of whom nobody knows": (
        {
            "Orders": queue(),
            "Tls": policy("Orders", {"Effect": "Deny", "Principal": IMPORTED, "Action": "sqs:*"}),
        },
        "Resources.Tls.Properties.PolicyDocument",
        "Fn::ImportValue: imported from another stack",
    ),
    "a tag that says no number": (
        {"Orders": queue(Tags=[{"Key": "mendq:max-processing-seconds", "Value": "long"}])},
        "Resources.Orders",
        "the tag mendq:max-processing-seconds must be a whole number from 1 to 43200: 'long'",
    ),
    "a nested stack": (
        {"Inner": {"Type": "AWS::CloudFormation::Stack", "Properties": {}}},
        "Resources.Inner",
        "a nested stack: its template is another",
    ),
}


@pytest.mark.parametrize("title", UNKNOWN)
def test_what_nobody_can_know_is_said_and_is_no_finding(title: str) -> None:
    resources, path, because = UNKNOWN[title]
    parameters = {"Open": {"Type": "String"}}
    assert found(resources, Parameters=parameters) == []
    assert (path, because) in not_judged(resources, Parameters=parameters)


def test_a_policy_of_which_nobody_knows_whose_it_is_may_be_any_queue_s() -> None:
    astray = policy("Orders")
    astray["Properties"]["Queues"] = [{"Fn::If": ["x", {"Ref": "Orders"}, {"Ref": "Parcels"}]}]
    resources = {"Orders": queue(), "Parcels": queue(), "Tls": astray}
    result = linted(resources)
    assert result.findings == []
    assert [each.place.path for each in result.not_judged] == [
        "Resources.Orders",
        "Resources.Parcels",
    ]


def test_a_policy_that_names_its_queue_twice_is_one() -> None:
    twice = policy("Orders")
    twice["Properties"]["Queues"] *= 2
    assert not_judged({"Orders": queue(), "Tls": twice}) == []


def test_whom_a_grant_names_is_no_matter_of_any_check() -> None:
    """A role of another stack is in half of all policies."""
    grant = {"Effect": "Allow", "Principal": {"AWS": IMPORTED}, "Action": "sqs:SendMessage"}
    condition = {"ArnEquals": {"aws:SourceArn": IMPORTED}}
    resources = {
        "Orders": queue(),
        "Tls": policy("Orders", grant, {**SENDS, "Condition": condition}),
    }
    assert found(resources) == []
    assert not_judged(resources) == []


def test_a_grant_to_everybody_from_a_place_that_nobody_knows_is_not_judged() -> None:
    condition = {"ArnEquals": {"aws:SourceArn": IMPORTED}}
    grant = {**SENDS, "Principal": "*", "Condition": condition}
    resources = {"Orders": queue(), "Tls": policy("Orders", grant)}
    assert found(resources) == []
    assert len(not_judged(resources)) == 1


def test_defaults_are_taken_and_said() -> None:
    parameters = {"Lease": {"Type": "Number", "Default": 5}, "Unused": {"Default": "x"}}
    resources = {
        "Orders": queue(VisibilityTimeout={"Ref": "Lease"}, RedrivePolicy=letters_to("Dead")),
        "Dead": queue(**KEPT_LONG),
        **BILL,
    }
    result = linted(with_policies(resources), Parameters=parameters)
    assert [each.symptom.name for each in result.findings] == ["lease_expired"]
    assert result.defaults == [("Lease", "5")]


def test_a_transform_and_a_loop_are_not_judged() -> None:
    resources = {"Fn::ForEach::Queues": ["x", ["a"], {}]}
    result = linted(resources, Transform="AWS::Serverless-2016-10-31")
    assert [each.place.path for each in result.not_judged] == [
        "Transform",
        "Resources.Fn::ForEach::Queues",
    ]


def test_a_finding_that_its_resource_ignores_is_shown_as_ignored() -> None:
    ignoring = {"Metadata": {"mendq": {"ignore": ["not_encrypted", "tls"]}}}
    resources = {
        "Orders": {**queue(SqsManagedSseEnabled=False), **ignoring},
        "Parcels": queue(SqsManagedSseEnabled=False),
    }
    result = linted(with_policies(resources))
    assert [each.resource for each in result.findings] == ["Parcels"]
    assert [each.resource for each in result.ignored] == ["Orders"]
    (typo,) = result.not_judged
    assert typo.because == "tls is no symptom that is looked for"


def test_a_queue_is_known_by_its_real_arn_where_the_assembly_says_where_it_goes() -> None:
    arn = "arn:aws:sqs:eu-west-1:123456789012:dead"
    redrive = {"deadLetterTargetArn": arn, "maxReceiveCount": 5}
    resources = with_policies(
        {"Orders": queue(RedrivePolicy=redrive), "D": queue(QueueName="dead")}
    )
    there = linted(resources, Environment("123456789012", "eu-west-1"))
    assert [each.resource for each in there.findings] == ["D"]
    anywhere = linted(resources)
    assert anywhere.findings == []
    assert "does not declare" in anywhere.not_judged[0].because


@pytest.mark.parametrize("name", ["dead-letters", "x" * 81, "with space", "\x1b[31m", ""])
def test_a_name_that_is_none_or_twice_is_no_trouble(name: str) -> None:
    resources = {"A": queue(QueueName=name), "B": queue(QueueName=name), "\x1b[2J": queue()}
    assert len(linted(resources).findings) == 3


def test_resources_that_name_each_other_in_a_circle_are_no_trouble() -> None:
    def named_after(other: str) -> dict[str, Any]:
        return queue(QueueName={"Fn::GetAtt": [other, "QueueName"]})

    alias = {"Type": "AWS::Lambda::Alias", "Properties": {"FunctionName": {"Ref": "Alias"}}}
    resources = {"A": named_after("B"), "B": named_after("A"), "C": named_after("C")}
    assert found({**resources, "Alias": alias, "M": reads({"Ref": "Alias"}, "A")}) == [
        ("A", "dead_letter_queue_missing")
    ]


def test_a_template_of_more_resources_than_can_be_deployed_is_refused() -> None:
    with pytest.raises(NotATemplate, match="more than 2,000 resources"):
        linted({f"Q{n}": queue() for n in range(2_001)})


def test_mappings_that_name_each_other_are_not_known() -> None:
    """CloudFormation takes no function in a mapping; this one would never end."""
    circle = {"Fn::FindInMap": ["A", "B", "C"]}
    resources = {**BILL, "Orders": queue(VisibilityTimeout=circle)}
    ((path, because),) = not_judged(resources, Mappings={"A": {"B": {"C": circle}}})
    assert path == "Resources.Orders.Properties.VisibilityTimeout"
    assert because == "Fn::FindInMap: it is neither a text nor a list of texts"


def test_what_is_nested_too_deep_to_be_worked_out_is_no_template() -> None:
    deep: Any = "x"
    for _ in range(70):
        deep = [deep]
    root = read(json.dumps({"Resources": {"Q": queue(QueueName=deep)}}).encode())
    lint(root, "template.json", Environment())
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 90)
    try:
        with pytest.raises(NotATemplate, match="too deep"):
            lint(root, "template.json", Environment())
    finally:
        sys.setrecursionlimit(before)


def test_what_is_ignored_is_told_apart_in_one_pass() -> None:
    ignoring = {"mendq": {"ignore": ["tls_not_enforced"]}}
    resources = {
        "A": {**queue(SqsManagedSseEnabled=False), "Metadata": ignoring},
        "B": queue(SqsManagedSseEnabled=False),
    }
    result = linted(resources)
    kept = [(each.resource, each.symptom.name) for each in result.findings]
    assert sorted(kept) == [
        ("A", "not_encrypted"),
        ("B", "not_encrypted"),
        ("B", "tls_not_enforced"),
    ]
    assert [each.resource for each in result.ignored] == ["A"]


def _policy_of(document: Any, *names: str) -> dict[str, Any]:
    properties = {"Queues": [{"Ref": each} for each in names], "PolicyDocument": document}
    return {"Type": "AWS::SQS::QueuePolicy", "Properties": properties}


def _with_letters(queues: int, **dead: Any) -> dict[str, Any]:
    named = {f"Q{n}": queue(RedrivePolicy=letters_to("D")) for n in range(queues)}
    return {**named, "D": queue(**dead)}


@pytest.mark.parametrize(
    "resources",
    [
        pytest.param(
            {
                **{f"Q{n}": queue() for n in range(1_900)},
                "P": _policy_of(
                    {"Statement": [{"Effect": "Deny", "Action": f"sqs:{n}"} for n in range(400)]},
                    *(f"Q{n}" for n in range(1_900)),
                ),
            },
            id="a long policy of every queue",
        ),
        pytest.param(
            _with_letters(
                1_000,
                RedriveAllowPolicy={
                    "redrivePermission": "byQueue",
                    "sourceQueueArns": [f"arn-{n}" for n in range(20_000)],
                },
            ),
            id="many sources beside many that name the queue",
        ),
        pytest.param(
            {
                f"Q{n}": {
                    **queue(),
                    "Metadata": {"mendq": {"ignore": [f"x{m}" for m in range(15)]}},
                }
                for n in range(1_500)
            },
            id="more to say than anybody reads",
        ),
    ],
)
def test_what_is_judged_over_and_over_counts_each_time(resources: dict[str, Any]) -> None:
    with pytest.raises(NotATemplate, match="more than 8,000,000 steps"):
        linted(resources)


def test_a_large_template_is_within_its_work() -> None:
    """As many queues as fit into a stack, with letters, a reader and a policy each."""
    resources: dict[str, Any] = {"F": function(Timeout=30), "Dead": queue(QueueName="dead")}
    for n in range(500):
        resources[f"Q{n}"] = queue(QueueName=f"q{n}", RedrivePolicy=letters_to("Dead"))
        resources[f"M{n}"] = reads({"Ref": "F"}, f"Q{n}")
        resources[f"P{n}"] = policy(f"Q{n}")
    assert linted(resources).queues == 501


def test_a_reason_is_not_said_a_thousand_times_at_full_length() -> None:
    long = {"Ref": "x" * 100_000}
    astray = {"Type": "AWS::SQS::QueuePolicy", "Properties": {"Queues": [long]}}
    resources = {**_with_letters(200, FifoQueue=long), "P": astray}
    assert len(json.dumps(linted(resources).document())) < 1_000_000


@pytest.mark.parametrize(
    "document",
    [
        "not json",
        {"Statement": "x"},
        {"Statement": [{"Effect": "Perhaps"}]},
        {"Version": "2012-10-17"},
        {"Statement": {"Effect": "Deny", "Action": "sqs:" + "x" * 20_480}},
    ],
)
def test_a_policy_that_is_none_is_not_judged(document: Any) -> None:
    result = linted({"Q": queue(), "P": _policy_of(document, "Q")})
    assert result.findings == []
    (only,) = result.not_judged
    assert only.place.path == "Resources.P.Properties.PolicyDocument"
    assert only.because == "no policy that SQS would take"
    assert "tls_not_enforced" in only.symptoms


ODD = st.recursive(
    st.sampled_from(["", "x", "*", "Orders", "-1", "9" * 30, None, True, 5, "\x1b[2J", "Allow"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["Ref", "Fn::GetAtt", "Fn::Sub", "Fn::Join", "Key", "Effect", "AWS"]),
            inner,
            max_size=2,
        )
    ),
    max_leaves=6,
)
KEYS = [
    "QueueName FifoQueue VisibilityTimeout MessageRetentionPeriod RedrivePolicy RedriveAllowPolicy",
    "KmsMasterKeyId SqsManagedSseEnabled Tags Queues PolicyDocument EventSourceArn FunctionName",
    "Enabled Timeout MaximumBatchingWindowInSeconds Targets TopicArn FifoTopic",
]
TYPES = [
    "AWS::SQS::Queue",
    "AWS::SQS::QueuePolicy",
    "AWS::SQS::QueueInlinePolicy",
    "AWS::Lambda::Function",
    "AWS::Lambda::Alias",
    "AWS::Lambda::EventSourceMapping",
    "AWS::SNS::Subscription",
    "AWS::SNS::Topic",
    "AWS::Events::Rule",
]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(TYPES),
            st.dictionaries(st.sampled_from(" ".join(KEYS).split()), ODD, max_size=4),
        ),
        min_size=1,
        max_size=4,
    ),
    ODD,
)
def test_whatever_stands_there_it_is_judged_or_said(
    resources: list[tuple[str, dict[str, Any]]], odd: Any
) -> None:
    given = {
        name: {"Type": kind, "Properties": properties}
        for name, (kind, properties) in zip(
            ["Orders", "Dead", "Bill", "Sender"], resources, strict=False
        )
    }
    sections = {"Parameters": {"x": odd}, "Mappings": odd, "Transform": odd}
    assert isinstance(linted({**given, "Odd": odd}, **sections), Linted)
