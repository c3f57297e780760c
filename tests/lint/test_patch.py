"""The lines for a queue's owner: which resource, which line, what it says and is to say."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mendq.cli.app import app
from mendq.lint import hcl, patch
from mendq.lint.decode import read_template
from mendq.lint.patch import (
    ALREADY_SET_NOTE,
    NEW_QUEUE_NOTE,
    NO_LINE_NOTE,
    PatchResult,
    QueueNotFound,
    SeveralQueuesFit,
    WantedValues,
)
from mendq.lint.template import NotATemplate
from tests.lint.builders import make_stack_artifact, write_cloud_assembly
from tests.lint.plans import arn, change, plan, queue_there

YAML = """\
Parameters:
  Timeout: {Type: Number, Default: 20}
Resources:
  Orders:
    Type: AWS::SQS::Queue
    Properties:
      QueueName: orders   # the shop's
      VisibilityTimeout: !Ref Timeout
      RedrivePolicy:
        deadLetterTargetArn: !ImportValue orders-dead
        # as often as it takes
        maxReceiveCount: 5

      Tags: []
  Inline: {Type: AWS::SQS::Queue, Properties: {QueueName: inline}}
  Bare:
    Type: AWS::SQS::Queue
  Own:
    Type: AWS::SQS::QueuePolicy
    Properties: {Queues: [!Ref Orders], PolicyDocument: {Statement: []}}
  Both:
    Type: AWS::SQS::QueuePolicy
    Properties: {Queues: [!Ref Inline, !Ref Bare], PolicyDocument: {Statement: []}}
"""
JSON = json.dumps(json.loads(json.dumps(read_template(YAML.encode()).root)), indent=2)
REDRIVE = {"deadLetterTargetArn": arn("dead"), "maxReceiveCount": 10}
POLICY = '{"Statement":[{"Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":"*"}]}'


def _patched(path: Path, text: str, name: str = "orders", **over: Any) -> PatchResult:
    owner = {
        each: over.pop(each)
        for each in ("tagged_stack", "tagged_logical_id", "requested_id")
        if each in over
    }
    values = over or {"VisibilityTimeout": "690"}
    path.write_bytes(text.encode())
    return patch.make_patch(str(path), WantedValues(arn(name), values, **owner))


def _applied(path: Path, found: PatchResult) -> Any:
    """The template once the diff is applied, as git does it."""
    _git_applies(found.diff, path.parent)
    return read_template(path.read_bytes()).root


def _git_applies(diff: list[str], folder: Path) -> None:
    given = "\n".join(diff) + "\n"
    subprocess.run(["git", "apply", "-"], cwd=folder, input=given, text=True, check=True)


def test_patch_that_would_make_the_template_too_long_is_left_to_people(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody could check what such a template says, so a person writes the line."""
    value = {"VisibilityTimeout": "690"}
    assert _patched(tmp_path / "fits.yaml", YAML, "inline", **value).diff
    monkeypatch.setattr("mendq.lint.decode.MOST_TEMPLATE_BYTES", len(YAML.encode()))
    (change,), diff = _patched(tmp_path / "full.yaml", YAML, "inline", **value)
    assert (change.note, change.is_left_to_people) == (NO_LINE_NOTE, True)
    assert diff == []


@pytest.mark.parametrize("where", ["the root", "its folder", "no work tree"])
@pytest.mark.parametrize("name", ["{}/infra/a.tf", "./infra/a.tf", "../shop/infra/a.tf", "linked"])
def test_git_applies_the_patch_whatever_path_names_the_terraform_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, where: str
) -> None:
    shop = tmp_path / "shop"
    (shop / "infra").mkdir(parents=True)
    (shop / "linked").symlink_to(shop / "infra" / "a.tf")
    if where != "no work tree":
        subprocess.run(["git", "init", "-q", shop], check=True)
    monkeypatch.chdir(shop)
    diff = _in_hcl(path := Path(name.format(shop)), HCL).diff
    assert diff[0] == "diff --git a/infra/a.tf b/infra/a.tf"
    _git_applies(diff, shop / "infra" if where == "its folder" else shop)
    assert "visibility_timeout_seconds = 690" in path.read_text()


def test_patch_of_a_file_outside_the_current_folder_is_relative_to_the_files_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    diff = _in_hcl(tmp_path / "a.tf", HCL).diff
    assert diff[1:3] == ["--- a/a.tf", "+++ b/a.tf"]
    _git_applies(diff, tmp_path)


def test_git_apply_of_a_patch_changes_no_file_except_the_template(tmp_path: Path) -> None:
    """A name may end at a tab for git, and whatever is called `.git` makes no work tree."""
    (tmp_path / "t.tf").write_text(HCL)
    assert not _in_hcl(tmp_path / "t.tf\tcopy.tf", HCL).diff
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for planted in (Path.mkdir, Path.touch):
        folder = tmp_path / planted.__name__
        folder.mkdir()
        planted(folder / ".git")
        _git_applies(_in_hcl(folder / "t.tf", HCL).diff, tmp_path)
        assert "visibility_timeout_seconds = 690" in (folder / "t.tf").read_text()
    assert (tmp_path / "t.tf").read_text() == HCL


SET = {"Bare": "Properties", "Inline": "Properties", "Orders": "VisibilityTimeout"}


@pytest.mark.parametrize(
    "text", [YAML, JSON, YAML.replace("\n", "\r\n")], ids=["yaml", "json", "crlf"]
)
@pytest.mark.parametrize("name", SET)
def test_git_applies_a_template_patch_that_changes_only_the_wanted_properties(
    tmp_path: Path, text: str, name: str
) -> None:
    path, values = tmp_path / "template", {"VisibilityTimeout": "690"}
    values |= {"RedrivePolicy": json.dumps(REDRIVE), "KmsDataKeyReusePeriodSeconds": "300"}
    found = _patched(path, text, requested_id=name, **values)
    assert path.read_bytes().decode() == text, "edits nothing"
    assert not any(each.note for each in found.changes)
    if "\r" in text:
        return  # git apply wants the line endings, which a diff on a terminal has not
    properties = _applied(path, found)["Resources"][name]["Properties"]
    expected = json.loads(json.dumps(read_template(text.encode()).root))["Resources"][name]
    own: dict[str, Any] = {"VisibilityTimeout": "690", "KmsDataKeyReusePeriodSeconds": "300"}
    own["RedrivePolicy"] = {**REDRIVE, "maxReceiveCount": "10"}
    assert json.loads(json.dumps(properties)) == {**expected.get("Properties", {}), **own}


def test_patch_names_line_property_and_old_value_of_each_change(tmp_path: Path) -> None:
    values = {"MessageRetentionPeriod": "1209600", "VisibilityTimeout": "690"}
    values |= {"RedrivePolicy": json.dumps(REDRIVE), "Policy": POLICY}
    found = _patched(tmp_path / "t.yaml", YAML, **values).changes
    own = "Resources.Orders.Properties"
    assert [(e.path, e.line) for e in found] == [
        (f"{own}.MessageRetentionPeriod", 7),
        (f"{own}.VisibilityTimeout", 8),
        (f"{own}.RedrivePolicy", 9),
        ("Resources.Own.Properties.PolicyDocument", 20),
    ]
    retention, visibility, redrive, policy = found
    assert (retention.old, visibility.old, policy.old) == (None, "!Ref Timeout", "{Statement: []}")
    assert str(redrive.old).startswith("deadLetterTargetArn: !ImportValue orders-dead")


@pytest.mark.parametrize(
    ("over", "note"),
    [
        ({"VisibilityTimeout": "20"}, ALREADY_SET_NOTE),
        ({"DeadLetterQueue": arn("made")}, NEW_QUEUE_NOTE),
        ({"requested_id": "Inline", "Policy": POLICY}, "no policy that is this queue's alone"),
        ({"requested_id": "Bare", "Policy": POLICY}, "no policy that is this queue's alone"),
    ],
)
def test_patch_of_a_value_without_a_line_of_its_own_gives_a_note_and_no_diff(
    tmp_path: Path, over: dict[str, Any], note: str
) -> None:
    found = _patched(tmp_path / "t.yaml", YAML, **over)
    (said,) = found.changes
    assert note in said.note
    assert not found.diff


@pytest.mark.parametrize(
    "properties", ["{}", "", '{"Fn::Transform": {Name: x}}', "{Tags: [], VisibilityTimeout: 5}"]
)
def test_patch_of_unusually_written_properties_is_correct_or_omitted(
    tmp_path: Path, properties: str
) -> None:
    text = f"Resources: {{'O': {{Type: AWS::SQS::Queue, Properties: {properties}}}}}\n"
    found = _patched(tmp_path / "t.yaml", text, requested_id="O")
    assert bool(found.diff) is (found.changes[0].note != NO_LINE_NOTE)
    if found.diff:
        root = _applied(tmp_path / "t.yaml", found)
        assert root["Resources"]["O"]["Properties"]["VisibilityTimeout"] == "690"


def _queue(**properties: Any) -> dict[str, Any]:
    return {"Type": "AWS::SQS::Queue", "Properties": properties}


def test_patch_finds_the_queue_by_its_cloudformation_tags_and_never_guesses_without_them(
    tmp_path: Path,
) -> None:
    text = json.dumps({"Resources": {"A": _queue(), "B": _queue()}})
    path, made = tmp_path / "t.json", "Shop-A-1ABCDEFGHIJKL"
    found = _patched(path, text, made, tagged_stack="Shop", tagged_logical_id="A").changes
    assert [(each.resource, each.found_by) for each in found] == [("A", "its tags")]
    with pytest.raises(QueueNotFound, match=r"say which by --resource if it is one of: A, B"):
        _patched(path, text, made)
    with pytest.raises(QueueNotFound, match="known to be C"):
        _patched(path, text, made, requested_id="C", tagged_logical_id="A")
    with pytest.raises(QueueNotFound, match="declares none"):
        _patched(path, '{"Resources": {}}')
    with pytest.raises(NotATemplate, match=f"{path}: "):
        _patched(path, "[]")


def test_patch_refuses_two_queues_of_the_same_name_unless_tags_identify_one(tmp_path: Path) -> None:
    text = json.dumps({"Resources": {e: _queue(QueueName="orders") for e in "AB"}})
    with pytest.raises(
        SeveralQueuesFit, match=r"2 queues may be orders, say which by --resource: A \("
    ):
        _patched(tmp_path / "t.json", text)
    found = _patched(tmp_path / "t.json", text, tagged_stack="Shop", tagged_logical_id="B")
    assert found.changes[0].resource == "B"


def test_patch_in_a_cloud_assembly_picks_the_queue_by_stack_name_account_and_region(
    tmp_path: Path,
) -> None:
    """Three stacks have the same logical id; one is of another region, one has another name."""
    here, there = "aws://123456789012/eu-west-1", "aws://123456789012/us-east-1"
    named = {"A": ("Shop", here), "B": ("Shop", there), "C": ("Other", here)}
    stacks = {e: make_stack_artifact(f"{e}.json", at) for e, (_, at) in named.items()}
    out = write_cloud_assembly(tmp_path / "cdk.out", stacks)
    manifest = json.loads((out / "manifest.json").read_text())
    resource = {**_queue(), "Metadata": {"aws:cdk:path": "Shop/Orders/Resource"}}
    for name, (stack_name, _) in named.items():
        manifest["artifacts"][name]["properties"]["stackName"] = stack_name
        (out / f"{name}.json").write_text(json.dumps({"Resources": {"Orders": resource}}, indent=1))
    (out / "manifest.json").write_text(json.dumps(manifest))
    wanted = WantedValues(arn("x"), {"VisibilityTimeout": "690"}, "Shop", "Orders")
    (said,), diff = patch.make_patch(str(out), wanted)
    assert said.file == str(out / "A.json")
    assert said.line
    assert "Shop/Orders/Resource" in said.note
    assert not diff, "cdk synth would write over it"
    assert "construct Shop/Orders/Resource" in CliRunner().invoke(app, ["lint", str(out)]).output


def test_patch_of_a_terraform_plan_gives_the_resource_address_and_no_diff(tmp_path: Path) -> None:
    text = json.dumps({**REDRIVE, "maxReceiveCount": 1})
    url = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders"
    beside = change("aws_sqs_queue_redrive_policy.x", {"queue_url": url, "redrive_policy": text})
    elsewhere = dict.fromkeys(("url", "id"), "https://elsewhere")
    other = queue_there("aws_sqs_queue.z", "orders", arn=arn("orders") + "-2", **elsewhere)
    content = plan(queue_there("module.m.aws_sqs_queue.q[0]", "orders"), beside, other).decode()
    values = {"VisibilityTimeout": "690", "RedrivePolicy": json.dumps(REDRIVE)}
    visibility, redrive = _patched(tmp_path / "plan.json", content, **values).changes
    assert visibility.path == "module.m.aws_sqs_queue.q[0].visibility_timeout_seconds"
    assert (visibility.old, visibility.new, visibility.line) == ("30", "690", None)
    assert redrive.path == "aws_sqs_queue_redrive_policy.x.redrive_policy"
    assert json.loads(str(redrive.old))["maxReceiveCount"] == "1"
    assert redrive.new.startswith('jsonencode({"deadLetterTargetArn": "arn:')
    assert ".tf" in visibility.note
    reference: Any = {"Condition": {"StringEquals": {"Ref": "aws_iam_role.admin"}}}
    (said,) = _patched(tmp_path / "plan.json", content, Policy=json.dumps(reference)).changes
    assert said.new == f"jsonencode({json.dumps(reference)})", "what AWS says is no reference"
    with pytest.raises(QueueNotFound, match="say which"):
        _patched(tmp_path / "plan.json", plan(other).decode())


HCL = """\
# resource "aws_sqs_queue" "orders" {
resource "aws_sqs_queue" "orders" {
  name = "orders"

  visibility_timeout_seconds = var.seconds # slow
  policy = <<EOF
resource "aws_sqs_queue" "here" {
EOF
}

resource "aws_sqs_queue" "other" { name = "${var.stage}-other" }
resource "aws_sqs_queue" "empty" {}

resource "aws_sqs_queue_redrive_policy" "orders" {
  queue_url      = aws_sqs_queue.orders.id
  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead.arn
    maxReceiveCount     = 4
  })
}
"""


def _in_hcl(path: Path, text: str, name: str = "orders", **over: Any) -> PatchResult:
    named, values = over.pop("named", ""), over or {"VisibilityTimeout": "690"}
    path.write_text(text)
    found = hcl.make_patch(str(path), WantedValues(arn(name), values, requested_id=named))
    assert path.read_text() == text, "edits nothing"
    return PatchResult(*found)


def test_patch_of_a_terraform_file_changes_the_block_that_sets_each_value(tmp_path: Path) -> None:
    values = {"VisibilityTimeout": "690", "MessageRetentionPeriod": "1209600"}
    found = _in_hcl(tmp_path / "a.tf", HCL, **values, RedrivePolicy=json.dumps(REDRIVE))
    assert [(each.path, each.line) for each in found.changes] == [
        ("aws_sqs_queue.orders.visibility_timeout_seconds", 5),
        ("aws_sqs_queue.orders.message_retention_seconds", 2),
        ("aws_sqs_queue_redrive_policy.orders.redrive_policy", 16),
    ]
    assert found.changes[0].old == "var.seconds"
    changed = [each for each in found.diff[3:] if each[0] in "+-"]
    assert changed == [
        "+  message_retention_seconds = 1209600",
        "-  visibility_timeout_seconds = var.seconds # slow",
        "+  visibility_timeout_seconds = 690 # slow",
        "-  redrive_policy = jsonencode({",
        "-    deadLetterTargetArn = aws_sqs_queue.dead.arn",
        "-    maxReceiveCount     = 4",
        "-  })",
        f"+  redrive_policy = jsonencode({json.dumps(REDRIVE)})",
    ]


def test_patch_of_a_terraform_queue_with_a_computed_name_needs_the_resource_option(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.tf"
    with pytest.raises(QueueNotFound, match=r"--resource if it is one of: aws_sqs_queue\.orders, "):
        _in_hcl(path, HCL, "prod-other")
    (said,) = _in_hcl(path, HCL, "prod-other", named="aws_sqs_queue.empty").changes
    assert (said.line, said.old) == (12, None)
    (said,) = _in_hcl(path, HCL, VisibilityTimeout="690").changes
    again = HCL.replace("var.seconds", "690")
    assert [e.note for e in _in_hcl(path, again).changes] == [ALREADY_SET_NOTE]


@pytest.mark.parametrize(
    "text",
    [
        *("a = {", "x = " + "[" * 5_000, "\x00", 'a = "${' * 300, " " * 300_000),
        'resource "aws_sqs_queue" "orders" /* { */ {\n  name = "orders"\n}\n',
        HCL.replace("var.seconds", "1\n  visibility_timeout_seconds = 2", 1),
    ],
)
def test_patch_of_a_file_that_is_not_hcl_is_refused_with_one_line(
    tmp_path: Path, text: str
) -> None:
    with pytest.raises(NotATemplate) as refused:
        _in_hcl(tmp_path / "a.tf", text)
    assert len(str(refused.value).splitlines()) == 1


def test_patch_offers_no_change_that_is_invalid_terraform_or_changes_another_queue(
    tmp_path: Path,
) -> None:
    in_a_line = 'resource "aws_sqs_queue" "orders" { name = "orders" }\n'
    found = _in_hcl(tmp_path / "a.tf", in_a_line, VisibilityTimeout="690")
    assert ([each.note for each in found.changes], found.diff) == ([NO_LINE_NOTE], [])
    either = HCL.replace("aws_sqs_queue.orders.id", 'aws_sqs_queue.orders.id == "" ? "" : "x"')
    assert either != HCL
    found = _in_hcl(tmp_path / "a.tf", either, RedrivePolicy=json.dumps(REDRIVE))
    assert [each.path for each in found.changes] == ["aws_sqs_queue.orders.redrive_policy"]


def test_patch_of_json_that_yaml_cannot_read_gives_a_note_and_no_diff(
    tmp_path: Path,
) -> None:
    """Two halves of a character, as JSON writes it, are no YAML."""
    path, template = tmp_path / "template.json", json.loads(JSON)
    template["Description"] = "\U0001f600"
    found = _patched(path, json.dumps(template, indent=2), requested_id="Orders")
    assert [change.note for change in found.changes] == [NO_LINE_NOTE]
    assert found.diff == []
    template["Description"] = "plain"
    found = _patched(path, json.dumps(template, indent=2), requested_id="Orders")
    assert [change.note for change in found.changes] == [""]
