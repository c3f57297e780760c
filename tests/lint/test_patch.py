"""The change that `mendq patch` proposes in a template, a Terraform file or a Terraform plan."""

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
from tests.lint.plans import make_arn, make_change, make_existing_queue, make_plan

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
REDRIVE = {"deadLetterTargetArn": make_arn("dead"), "maxReceiveCount": 10}
POLICY = '{"Statement":[{"Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":"*"}]}'


def _make_patch(path: Path, text: str, name: str = "orders", **wanted: Any) -> PatchResult:
    """Patch a template. `wanted` are attributes, or fields of WantedValues that name the owner."""
    owner = {}
    for field in ("tagged_stack", "tagged_logical_id", "requested_id"):
        if field in wanted:
            owner[field] = wanted.pop(field)
    values = wanted or {"VisibilityTimeout": "690"}
    path.write_bytes(text.encode())
    return patch.make_patch(str(path), WantedValues(make_arn(name), values, **owner))


def _apply_patch(path: Path, patched: PatchResult) -> Any:
    """Let git apply the diff and return the template."""
    _run_git_apply(patched.diff, path.parent)
    return read_template(path.read_bytes()).root


def _run_git_apply(diff: list[str], folder: Path) -> None:
    given = "\n".join(diff) + "\n"
    subprocess.run(["git", "apply", "-"], cwd=folder, input=given, text=True, check=True)


def test_patch_that_would_make_the_template_too_long_is_left_to_people(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mendq cannot read such a template again to check the change, so a person writes the line."""
    value = {"VisibilityTimeout": "690"}
    assert _make_patch(tmp_path / "fits.yaml", YAML, "inline", **value).diff
    monkeypatch.setattr("mendq.lint.decode.MOST_TEMPLATE_BYTES", len(YAML.encode()))
    (change,), diff = _make_patch(tmp_path / "full.yaml", YAML, "inline", **value)
    assert change.note == NO_LINE_NOTE
    assert change.is_left_to_people
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
    path = Path(name.format(shop))
    diff = _make_hcl_patch(path, HCL).diff
    assert diff[0] == "diff --git a/infra/a.tf b/infra/a.tf"
    _run_git_apply(diff, shop / "infra" if where == "its folder" else shop)
    assert "visibility_timeout_seconds = 690" in path.read_text()


def test_patch_of_a_file_outside_the_current_folder_is_relative_to_the_files_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    diff = _make_hcl_patch(tmp_path / "a.tf", HCL).diff
    assert diff[1:3] == ["--- a/a.tf", "+++ b/a.tf"]
    _run_git_apply(diff, tmp_path)


def test_git_apply_of_a_patch_changes_no_file_except_the_template(tmp_path: Path) -> None:
    """A file or folder called `.git` alone is no work tree."""
    (tmp_path / "t.tf").write_text(HCL)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for make_entry in (Path.mkdir, Path.touch):
        folder = tmp_path / make_entry.__name__
        folder.mkdir()
        make_entry(folder / ".git")
        _run_git_apply(_make_hcl_patch(folder / "t.tf", HCL).diff, tmp_path)
        assert "visibility_timeout_seconds = 690" in (folder / "t.tf").read_text()
    assert (tmp_path / "t.tf").read_text() == HCL


def test_patch_of_a_file_whose_name_has_a_tab_gives_no_diff(tmp_path: Path) -> None:
    """Git cuts a file name at a tab, so it would change another file."""
    assert not _make_hcl_patch(tmp_path / "t.tf\tcopy.tf", HCL).diff


QUEUE_IDS = {"Bare": "Properties", "Inline": "Properties", "Orders": "VisibilityTimeout"}


@pytest.mark.parametrize(
    "text", [YAML, JSON, YAML.replace("\n", "\r\n")], ids=["yaml", "json", "crlf"]
)
@pytest.mark.parametrize("name", QUEUE_IDS)
def test_git_applies_a_template_patch_that_changes_only_the_wanted_properties(
    tmp_path: Path, text: str, name: str
) -> None:
    path = tmp_path / "template"
    values = {
        "VisibilityTimeout": "690",
        "RedrivePolicy": json.dumps(REDRIVE),
        "KmsDataKeyReusePeriodSeconds": "300",
    }
    patched = _make_patch(path, text, requested_id=name, **values)
    assert path.read_bytes().decode() == text, "make_patch must not edit the file"
    assert not any(change.note for change in patched.changes)
    if "\r" in text:
        return  # the printed diff has no CRLF, so git cannot apply it
    properties = _apply_patch(path, patched)["Resources"][name]["Properties"]
    expected = json.loads(json.dumps(read_template(text.encode()).root))["Resources"][name]
    assert json.loads(json.dumps(properties)) == {
        **expected.get("Properties", {}),
        "VisibilityTimeout": "690",
        "KmsDataKeyReusePeriodSeconds": "300",
        "RedrivePolicy": {**REDRIVE, "maxReceiveCount": "10"},
    }


def test_patch_names_line_property_and_old_value_of_each_change(tmp_path: Path) -> None:
    values = {"MessageRetentionPeriod": "1209600", "VisibilityTimeout": "690"}
    values |= {"RedrivePolicy": json.dumps(REDRIVE), "Policy": POLICY}
    changes = _make_patch(tmp_path / "t.yaml", YAML, **values).changes
    own = "Resources.Orders.Properties"
    assert [(change.path, change.line) for change in changes] == [
        (f"{own}.MessageRetentionPeriod", 7),
        (f"{own}.VisibilityTimeout", 8),
        (f"{own}.RedrivePolicy", 9),
        ("Resources.Own.Properties.PolicyDocument", 20),
    ]
    retention, visibility, redrive, policy = changes
    assert retention.old is None
    assert visibility.old == "!Ref Timeout"
    assert policy.old == "{Statement: []}"
    assert str(redrive.old).startswith("deadLetterTargetArn: !ImportValue orders-dead")


@pytest.mark.parametrize(
    ("wanted", "note"),
    [
        ({"VisibilityTimeout": "20"}, ALREADY_SET_NOTE),
        ({"DeadLetterQueue": make_arn("made")}, NEW_QUEUE_NOTE),
        ({"requested_id": "Inline", "Policy": POLICY}, "no policy that is this queue's alone"),
        ({"requested_id": "Bare", "Policy": POLICY}, "no policy that is this queue's alone"),
    ],
)
def test_patch_without_a_line_to_change_gives_a_note_that_says_why_and_no_diff(
    tmp_path: Path, wanted: dict[str, Any], note: str
) -> None:
    patched = _make_patch(tmp_path / "t.yaml", YAML, **wanted)
    (change,) = patched.changes
    assert note in change.note
    assert not patched.diff


@pytest.mark.parametrize(
    "properties", ["{}", "", '{"Fn::Transform": {Name: x}}', "{Tags: [], VisibilityTimeout: 5}"]
)
def test_patch_of_unusually_written_properties_is_correct_or_omitted(
    tmp_path: Path, properties: str
) -> None:
    text = f"Resources: {{'O': {{Type: AWS::SQS::Queue, Properties: {properties}}}}}\n"
    patched = _make_patch(tmp_path / "t.yaml", text, requested_id="O")
    assert bool(patched.diff) is (patched.changes[0].note != NO_LINE_NOTE)
    if patched.diff:
        root = _apply_patch(tmp_path / "t.yaml", patched)
        assert root["Resources"]["O"]["Properties"]["VisibilityTimeout"] == "690"


def _make_queue(**properties: Any) -> dict[str, Any]:
    return {"Type": "AWS::SQS::Queue", "Properties": properties}


def test_patch_finds_the_queue_by_its_cloudformation_tags_and_never_guesses_without_them(
    tmp_path: Path,
) -> None:
    text = json.dumps({"Resources": {"A": _make_queue(), "B": _make_queue()}})
    path = tmp_path / "t.json"
    generated_name = "Shop-A-1ABCDEFGHIJKL"
    changes = _make_patch(
        path, text, generated_name, tagged_stack="Shop", tagged_logical_id="A"
    ).changes
    assert [(change.resource, change.found_by) for change in changes] == [("A", "its tags")]
    with pytest.raises(QueueNotFound, match=r"say which by --resource if it is one of: A, B"):
        _make_patch(path, text, generated_name)


def test_patch_with_the_resource_option_finds_no_other_queue_even_if_tags_name_one(
    tmp_path: Path,
) -> None:
    text = json.dumps({"Resources": {"A": _make_queue()}})
    with pytest.raises(QueueNotFound, match="known to be C"):
        _make_patch(tmp_path / "t.json", text, requested_id="C", tagged_logical_id="A")


def test_patch_of_a_template_without_queues_says_that_it_declares_none(tmp_path: Path) -> None:
    with pytest.raises(QueueNotFound, match="declares none"):
        _make_patch(tmp_path / "t.json", '{"Resources": {}}')


def test_patch_of_a_file_that_is_no_template_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    with pytest.raises(NotATemplate, match=f"{path}: "):
        _make_patch(path, "[]")


def test_patch_refuses_two_queues_of_the_same_name_unless_tags_identify_one(tmp_path: Path) -> None:
    text = json.dumps(
        {"Resources": {logical_id: _make_queue(QueueName="orders") for logical_id in "AB"}}
    )
    with pytest.raises(
        SeveralQueuesFit, match=r"2 queues may be orders, say which by --resource: A \("
    ):
        _make_patch(tmp_path / "t.json", text)
    patched = _make_patch(tmp_path / "t.json", text, tagged_stack="Shop", tagged_logical_id="B")
    assert patched.changes[0].resource == "B"


def test_patch_in_a_cloud_assembly_picks_the_queue_by_stack_account_and_region_without_a_diff(
    tmp_path: Path,
) -> None:
    """Three stacks have a queue of this logical id: one in another region, one of another name."""
    queues_region = "aws://123456789012/eu-west-1"
    other_region = "aws://123456789012/us-east-1"
    named = {
        "A": ("Shop", queues_region),
        "B": ("Shop", other_region),
        "C": ("Other", queues_region),
    }
    stacks = {
        name: make_stack_artifact(f"{name}.json", environment)
        for name, (_, environment) in named.items()
    }
    out = write_cloud_assembly(tmp_path / "cdk.out", stacks)
    manifest = json.loads((out / "manifest.json").read_text())
    resource = {**_make_queue(), "Metadata": {"aws:cdk:path": "Shop/Orders/Resource"}}
    for name, (stack_name, _) in named.items():
        manifest["artifacts"][name]["properties"]["stackName"] = stack_name
        (out / f"{name}.json").write_text(json.dumps({"Resources": {"Orders": resource}}, indent=1))
    (out / "manifest.json").write_text(json.dumps(manifest))
    wanted = WantedValues(make_arn("x"), {"VisibilityTimeout": "690"}, "Shop", "Orders")
    (change,), diff = patch.make_patch(str(out), wanted)
    assert change.file == str(out / "A.json")
    assert change.line
    assert "Shop/Orders/Resource" in change.note
    assert not diff, "the next cdk synth would overwrite the change"
    assert "construct Shop/Orders/Resource" in CliRunner().invoke(app, ["lint", str(out)]).output


def test_patch_of_a_terraform_plan_gives_the_address_old_and_new_value_and_no_diff(
    tmp_path: Path,
) -> None:
    text = json.dumps({**REDRIVE, "maxReceiveCount": 1})
    url = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders"
    redrive_policy = make_change(
        "aws_sqs_queue_redrive_policy.x", {"queue_url": url, "redrive_policy": text}
    )
    elsewhere = dict.fromkeys(("url", "id"), "https://elsewhere")
    other = make_existing_queue(
        "aws_sqs_queue.z", "orders", arn=make_arn("orders") + "-2", **elsewhere
    )
    content = make_plan(
        make_existing_queue("module.m.aws_sqs_queue.q[0]", "orders"), redrive_policy, other
    ).decode()
    values = {"VisibilityTimeout": "690", "RedrivePolicy": json.dumps(REDRIVE)}
    (visibility, redrive), diff = _make_patch(tmp_path / "plan.json", content, **values)
    assert not diff
    assert visibility.path == "module.m.aws_sqs_queue.q[0].visibility_timeout_seconds"
    assert visibility.old == "30"
    assert visibility.new == "690"
    assert visibility.line is None
    assert redrive.path == "aws_sqs_queue_redrive_policy.x.redrive_policy"
    assert json.loads(str(redrive.old))["maxReceiveCount"] == "1"
    assert redrive.new.startswith('jsonencode({"deadLetterTargetArn": "arn:')
    assert ".tf" in visibility.note


def test_patch_of_a_terraform_plan_writes_a_ref_in_a_policy_as_it_is(tmp_path: Path) -> None:
    """AWS's Ref is no Terraform reference."""
    content = make_plan(make_existing_queue("aws_sqs_queue.q", "orders")).decode()
    reference: Any = {"Condition": {"StringEquals": {"Ref": "aws_iam_role.admin"}}}
    (change,) = _make_patch(tmp_path / "plan.json", content, Policy=json.dumps(reference)).changes
    assert change.new == f"jsonencode({json.dumps(reference)})"


def test_patch_of_a_terraform_plan_takes_no_queue_with_another_arn_and_url(
    tmp_path: Path,
) -> None:
    elsewhere = dict.fromkeys(("url", "id"), "https://elsewhere")
    other = make_existing_queue(
        "aws_sqs_queue.z", "orders", arn=make_arn("orders") + "-2", **elsewhere
    )
    with pytest.raises(QueueNotFound, match="say which"):
        _make_patch(tmp_path / "plan.json", make_plan(other).decode())


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


def _make_hcl_patch(path: Path, text: str, name: str = "orders", **wanted: Any) -> PatchResult:
    """Patch a Terraform file. `requested_id` names the resource, the rest are attributes."""
    requested_id = wanted.pop("requested_id", "")
    values = wanted or {"VisibilityTimeout": "690"}
    path.write_text(text)
    patched = hcl.make_patch(
        str(path), WantedValues(make_arn(name), values, requested_id=requested_id)
    )
    assert path.read_text() == text, "make_patch must not edit the file"
    return PatchResult(*patched)


def test_patch_of_a_terraform_file_changes_the_block_that_sets_each_value(tmp_path: Path) -> None:
    values = {"VisibilityTimeout": "690", "MessageRetentionPeriod": "1209600"}
    patched = _make_hcl_patch(tmp_path / "a.tf", HCL, **values, RedrivePolicy=json.dumps(REDRIVE))
    assert [(change.path, change.line) for change in patched.changes] == [
        ("aws_sqs_queue.orders.visibility_timeout_seconds", 5),
        ("aws_sqs_queue.orders.message_retention_seconds", 2),
        ("aws_sqs_queue_redrive_policy.orders.redrive_policy", 16),
    ]
    assert patched.changes[0].old == "var.seconds"
    changed_lines = [line for line in patched.diff[3:] if line[0] in "+-"]
    assert changed_lines == [
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
        _make_hcl_patch(path, HCL, "prod-other")
    (change,) = _make_hcl_patch(path, HCL, "prod-other", requested_id="aws_sqs_queue.empty").changes
    assert change.line == 12
    assert change.old is None


def test_patch_of_a_terraform_queue_with_a_literal_name_needs_no_option(tmp_path: Path) -> None:
    patch = _make_hcl_patch(tmp_path / "a.tf", HCL, VisibilityTimeout="690")
    assert len(patch.changes) == 1


def test_patch_of_a_terraform_value_that_is_set_already_says_so(tmp_path: Path) -> None:
    already_set = HCL.replace("var.seconds", "690")
    (change,) = _make_hcl_patch(tmp_path / "a.tf", already_set).changes
    assert change.note == ALREADY_SET_NOTE


@pytest.mark.parametrize(
    "text",
    [
        *("a = {", "x = " + "[" * 5_000, "\x00", 'a = "${' * 300, " " * 300_000),
        'resource "aws_sqs_queue" "orders" /* { */ {\n  name = "orders"\n}\n',
        HCL.replace("var.seconds", "1\n  visibility_timeout_seconds = 2", 1),
    ],
)
def test_patch_of_a_terraform_file_that_cannot_be_read_for_sure_is_refused_with_one_line(
    tmp_path: Path, text: str
) -> None:
    with pytest.raises(NotATemplate) as refused:
        _make_hcl_patch(tmp_path / "a.tf", text)
    assert len(str(refused.value).splitlines()) == 1


def test_patch_offers_no_change_that_is_invalid_terraform_or_changes_another_queue(
    tmp_path: Path,
) -> None:
    one_line = 'resource "aws_sqs_queue" "orders" { name = "orders" }\n'
    patched = _make_hcl_patch(tmp_path / "a.tf", one_line, VisibilityTimeout="690")
    assert [change.note for change in patched.changes] == [NO_LINE_NOTE]
    assert patched.diff == []
    conditional = HCL.replace("aws_sqs_queue.orders.id", 'aws_sqs_queue.orders.id == "" ? "" : "x"')
    assert conditional != HCL
    patched = _make_hcl_patch(tmp_path / "a.tf", conditional, RedrivePolicy=json.dumps(REDRIVE))
    assert [change.path for change in patched.changes] == ["aws_sqs_queue.orders.redrive_policy"]


def test_patch_of_json_that_yaml_cannot_read_gives_a_note_and_no_diff(
    tmp_path: Path,
) -> None:
    """JSON writes an emoji as two surrogates, which YAML cannot read."""
    path = tmp_path / "template.json"
    template = json.loads(JSON)
    template["Description"] = "\U0001f600"
    patched = _make_patch(path, json.dumps(template, indent=2), requested_id="Orders")
    assert [change.note for change in patched.changes] == [NO_LINE_NOTE]
    assert patched.diff == []
    template["Description"] = "plain"
    patched = _make_patch(path, json.dumps(template, indent=2), requested_id="Orders")
    assert [change.note for change in patched.changes] == [""]


DATA_SOURCE = 'data "aws_sqs_queue" "orders" {\n  name = "orders"\n}\n'


@pytest.mark.parametrize("requested_id", ["", "aws_sqs_queue.orders", "data.aws_sqs_queue.orders"])
def test_patch_of_a_terraform_file_that_only_reads_the_queue_finds_no_queue(
    tmp_path: Path, requested_id: str
) -> None:
    """A data source has no attribute that could be set: another module declares the queue."""
    with pytest.raises(QueueNotFound):
        _make_hcl_patch(tmp_path / "a.tf", DATA_SOURCE, requested_id=requested_id)


@pytest.mark.parametrize("text", [DATA_SOURCE + HCL, HCL + DATA_SOURCE])
def test_patch_changes_the_resource_and_not_the_data_source_of_the_same_name(
    text: str, tmp_path: Path
) -> None:
    (change,) = _make_hcl_patch(tmp_path / "a.tf", text).changes
    assert change.path == "aws_sqs_queue.orders.visibility_timeout_seconds"
    assert change.line is not None
    assert "visibility_timeout_seconds = var.seconds" in text.splitlines()[change.line - 1]


SERVERLESS = """\
service: shop
provider: {name: aws}
resources:
  Resources:
    Orders:
      Type: AWS::SQS::Queue
      Properties:
        VisibilityTimeout: 20
"""


def test_patch_of_a_serverless_file_changes_the_queue_where_it_is_declared(tmp_path: Path) -> None:
    path = tmp_path / "serverless.yml"
    path.write_text(SERVERLESS)
    wanted = WantedValues(make_arn("orders"), {"VisibilityTimeout": "180"}, requested_id="Orders")
    (change,) = patch.make_patch(str(path), wanted).changes
    assert (change.line, change.old, change.note) == (8, "20", "")
    diff = patch.make_patch(str(path), wanted).diff
    assert [line for line in diff if line.startswith(("+ ", "- "))] == [
        "-        VisibilityTimeout: 20",
        "+        VisibilityTimeout: 180",
    ]


def test_patch_of_a_queue_in_a_list_of_resources_is_left_to_people(tmp_path: Path) -> None:
    path = tmp_path / "serverless.yml"
    path.write_text(SERVERLESS.replace("  Resources:", "- Resources:"))
    wanted = WantedValues(make_arn("orders"), {"VisibilityTimeout": "180"}, requested_id="Orders")
    result = patch.make_patch(str(path), wanted)
    assert result.diff == []
    assert result.changes[0].note == NO_LINE_NOTE
