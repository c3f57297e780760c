"""Test `mendq patch`, which prints a case's fix as a diff of the owner's template."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.builders import Operator
from tests.heal.operators import load_newest_case

BEFORE = "      VisibilityTimeout: "
TEMPLATE = """\
Resources:
  Orders:
    Type: AWS::SQS::Queue
    Properties:
      QueueName: orders.fifo
      FifoQueue: true
      VisibilityTimeout: 30
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("shop.yaml").write_text(TEMPLATE)
    return "shop.yaml"


def test_patch_prints_the_diff_of_a_fix_and_does_not_edit_the_template(
    operator: Operator, file: str
) -> None:
    case_id = operator.open_applied_case()
    after = load_newest_case(operator.aws).steps[0]["after"]
    patch = operator.run_json("patch", "orders.fifo", "--template", file)
    (change,) = patch["changes"]
    assert (patch["case_id"], patch["state"], patch["is_made"]) == (case_id, "applied", True)
    assert (change["file"], change["line"]) == (file, 7)
    assert (change["old"], change["new"], patch["overridden"]) == ("30", after, {})
    assert patch["diff"][-2:] == [
        "-      VisibilityTimeout: 30",
        f"+      VisibilityTimeout: {after}",
    ]
    result = operator.run("patch", case_id, "--template", file)
    assert result.exit_code == 0
    assert "\n".join(patch["diff"]) in result.output
    assert Path(file).read_text() == TEMPLATE


def test_patch_of_a_template_that_has_the_new_value_already_has_no_diff(
    operator: Operator, file: str
) -> None:
    case_id = operator.open_applied_case()
    after = load_newest_case(operator.aws).steps[0]["after"]
    Path(file).write_text(TEMPLATE.replace("30", after))
    assert operator.run_json("patch", case_id, "--template", file)["diff"] == []


def test_patch_of_a_proposal_prints_the_diff_and_says_that_the_change_is_not_made(
    operator: Operator, file: str
) -> None:
    case_id = operator.open_proposed_case()
    patch = operator.run_json("patch", case_id, "--template", file)
    assert (patch["is_made"], bool(patch["diff"])) == (False, True)
    assert "proposed, not made" in operator.read_output("patch", case_id, "--template", file)


def test_patch_offers_no_line_for_a_value_that_a_person_changed_since(
    operator: Operator, file: str
) -> None:
    case_id = operator.open_applied_case()
    operator.set_visibility_by_hand(77)
    patch = operator.run_json("patch", case_id, "--template", file, code=3)
    assert (patch["changes"], patch["overridden"]) == ([], {"VisibilityTimeout": "77"})
    output = operator.read_output("patch", case_id, "--template", file, code=3)
    assert "somebody has set 77 s since, which stays" in output


def roll_back_applied_case(operator: Operator) -> str:
    case_id = operator.open_applied_case()
    operator.connect_lambdas()
    operator.run("rollback", case_id, "--yes")
    return case_id


def test_patch_of_a_rolled_back_case_offers_no_change_and_reads_no_template(
    operator: Operator, file: str
) -> None:
    case_id = roll_back_applied_case(operator)
    patch = operator.run_json("patch", case_id, "--template", "gone.yaml")
    assert (patch["state"], patch["changes"]) == ("rolled_back", [])
    assert "nothing to patch" in operator.read_output("patch", case_id, "--template", file)


def test_patch_of_a_queue_without_an_open_case_says_that_a_closed_case_needs_its_id(
    operator: Operator, file: str
) -> None:
    roll_back_applied_case(operator)
    message = operator.read_refusal("patch", "orders.fifo", "--template", file, code=4)
    assert "a closed one needs its id" in message


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("Resources: {}", 4, "it declares none"),
        (TEMPLATE.replace("orders.fifo", "other.fifo"), 4, "say which by --resource"),
        (TEMPLATE + TEMPLATE.partition("\n")[2].replace("Orders", "Again"), 1, "2 queues may be"),
        ("\x1b[2J", 2, "shop.yaml: "),
        (None, 2, "cannot be read"),
    ],
    ids=["no queue", "another queue", "two queues", "no YAML", "no file"],
)
def test_patch_refuses_an_unreadable_template_or_one_without_exactly_one_matching_queue(
    operator: Operator, file: str, text: str | None, code: int, says: str
) -> None:
    case_id = operator.open_applied_case()
    Path(file).unlink()
    if text is not None:
        Path(file).write_text(text)
    assert says in operator.read_refusal("patch", case_id, "--template", file, code=code)


def test_patch_of_a_template_in_which_lines_must_be_written_by_hand_exits_with_1(
    operator: Operator, file: str
) -> None:
    case_id = operator.open_applied_case()
    Path(file).write_text("Resources: {Orders: {Type: AWS::SQS::Queue, Properties: {}}}")
    patch = operator.run_json("patch", case_id, "--template", file, "--resource", "Orders", code=1)
    assert "by hand" in patch["changes"][0]["note"]


def test_patch_of_a_case_that_does_not_exist_is_refused(operator: Operator, file: str) -> None:
    assert "no case" in operator.read_refusal("patch", "gone", "--template", file, code=4)


def test_patch_escapes_control_characters_of_the_template(operator: Operator, file: str) -> None:
    case_id = operator.open_applied_case()
    evil = '      Tags: [{Key: a, Value: "\u202ex"}]\n'
    Path(file).write_text(TEMPLATE + evil, encoding="utf-8")
    result = operator.run("patch", case_id, "--template", file)
    assert "\\x202e" in result.output
    assert "\u202e" not in result.output


def test_patch_of_terraform_without_hcl2_says_to_install_the_lint_extra(
    operator: Operator, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case_id = operator.open_applied_case()
    monkeypatch.setitem(sys.modules, "hcl2", None)
    monkeypatch.delitem(sys.modules, "mendq.lint.hcl", raising=False)
    says = operator.read_refusal("patch", case_id, "--template", "main.tf", code=2)
    assert "pip install '.[lint]'" in says


def test_patch_of_a_deleted_queue_is_refused_and_does_not_edit_the_template(
    operator: Operator, file: str
) -> None:
    case_id = operator.open_applied_case()
    sqs = operator.aws.clients.sqs
    sqs.delete_queue(QueueUrl=operator.aws.url("orders.fifo"))
    message = operator.read_refusal("patch", case_id, "--template", file, code=4)
    assert "orders.fifo is gone: there is nothing to patch" in message
    assert Path(file).read_text() == TEMPLATE
