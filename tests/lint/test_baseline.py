"""`mendq lint --baseline`: known findings are left out, new and worse ones count."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from mendq.cli.app import app
from mendq.lint.baseline import BaselineUnreadable, read_baseline
from tests.lint.builders import FAULTY_TEMPLATE

pytestmark = pytest.mark.usefixtures("no_account")
VISIBILITY = "visibility_timeout_too_short"
BASELINE = "queues.json"
ENTRY = {"file": "a", "resource": "b", "symptom": "c", "class": "losing"}
SECOND_QUEUE = """
  Second:
    Type: AWS::SQS::Queue
    Properties: {VisibilityTimeout: 20}
  ReadSecond:
    Type: AWS::Lambda::EventSourceMapping
    Properties: {EventSourceArn: !GetAtt Second.Arn, FunctionName: !Ref Bill, BatchSize: 1}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a faulty template."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.yaml").write_text(FAULTY_TEMPLATE)
    return tmp_path


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["lint", *arguments])


def _write(*templates: str) -> None:
    result = _run(*templates, "--baseline", BASELINE, "--write-baseline")
    assert result.exit_code == 0, result.output


def _compare(*arguments: str) -> Any:
    return json.loads(_run(*arguments, "--baseline", BASELINE, "--json").stdout)


def _list_findings(document: Any) -> list[tuple[str, str]]:
    return [
        (finding["resource"], finding["symptom"])
        for template in document["templates"]
        for finding in template["findings"]
    ]


def test_lint_with_a_baseline_of_all_findings_exits_0_and_counts_them_as_known(
    folder: Path,
) -> None:
    _write("shop.yaml")
    result = _run("shop.yaml", "--baseline", BASELINE)
    assert result.exit_code == 0
    assert "0 findings, 1 ignored, 1 in the baseline" in result.stdout
    assert json.loads((folder / BASELINE).read_text())["findings"] == [
        {
            "file": "shop.yaml",
            "resource": "Orders",
            "symptom": VISIBILITY,
            "class": "standing_still",
        }
    ]


def test_lint_with_a_baseline_reports_a_new_finding_and_exits_1(folder: Path) -> None:
    _write("shop.yaml")
    (folder / "shop.yaml").write_text(FAULTY_TEMPLATE + SECOND_QUEUE)
    document = _compare("shop.yaml")
    assert ("Second", VISIBILITY) in _list_findings(document)
    assert ("Orders", VISIBILITY) not in _list_findings(document)
    assert document["in_baseline"] == 1
    assert _run("shop.yaml", "--baseline", BASELINE).exit_code == 1


def test_lint_reports_a_finding_of_the_baseline_whose_class_became_worse(folder: Path) -> None:
    (folder / "shop.yaml").write_text(FAULTY_TEMPLATE.replace("Default: 20", "Default: 100"))
    _write("shop.yaml")
    assert _compare("shop.yaml")["findings"] == 0
    (folder / "shop.yaml").write_text(FAULTY_TEMPLATE)
    assert _list_findings(_compare("shop.yaml")) == [("Orders", VISIBILITY)]


def test_lint_does_not_report_a_finding_of_the_baseline_whose_class_became_milder(
    folder: Path,
) -> None:
    _write("shop.yaml")
    (folder / "shop.yaml").write_text(FAULTY_TEMPLATE.replace("Default: 20", "Default: 100"))
    assert _compare("shop.yaml")["findings"] == 0


def test_lint_reports_an_entry_as_stale_once_its_fault_is_fixed(folder: Path) -> None:
    _write("shop.yaml")
    (folder / "shop.yaml").write_text(FAULTY_TEMPLATE.replace("Default: 20", "Default: 180"))
    (stale,) = _compare("shop.yaml")["stale"]
    assert (stale["where"], stale["symptom"]) == (BASELINE, VISIBILITY)
    assert f"Orders in shop.yaml no longer has {VISIBILITY}" in stale["because"]
    text = _run("shop.yaml", "--baseline", BASELINE)
    assert text.exit_code == 0, "a stale entry alone is no finding"
    assert "stale" in text.stdout
    annotations = _run("shop.yaml", "--baseline", BASELINE, "--format", "github").stdout
    assert annotations.startswith(f"::notice title=stale%3A {VISIBILITY}::")


def test_lint_does_not_report_entries_of_templates_that_it_does_not_read_as_stale(
    folder: Path,
) -> None:
    (folder / "other.yaml").write_text(FAULTY_TEMPLATE)
    _write("shop.yaml", "other.yaml")
    document = _compare("other.yaml")
    assert (document["stale"], document["in_baseline"]) == ([], 1)


def test_lint_does_not_report_an_entry_as_stale_that_it_cannot_check_any_more(
    folder: Path,
) -> None:
    _write("shop.yaml")
    unknown = FAULTY_TEMPLATE.replace("Properties: {Timeout: 30}", "Properties: {Timeout: !Ref T}")
    unknown = unknown.replace("Parameters:\n", "Parameters:\n  T: {Type: Number}\n")
    (folder / "shop.yaml").write_text(unknown)
    document = _compare("shop.yaml")
    assert (document["findings"], document["stale"]) == (0, [])


def test_baseline_in_another_folder_fits_the_same_template(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write("shop.yaml")
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    result = _run("../shop.yaml", "--baseline", f"../{BASELINE}")
    assert result.exit_code == 0, result.output


def test_lint_with_a_missing_baseline_exits_2_and_writes_nothing(folder: Path) -> None:
    result = _run("shop.yaml", "--baseline", BASELINE)
    assert result.exit_code == 2
    assert "--write-baseline" in result.stderr
    assert not (folder / BASELINE).exists()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("[", "it is not valid JSON"),
        ("[" * 100_000, "it is not valid JSON"),
        ("[]", "its `schema` is not 1"),
        ('{"schema": 2}', "its `schema` is not 1"),
        ('{"schema": 1}', "its `findings` is not a list"),
        ('{"schema": 1, "findings": [1]}', "findings[0] is not an object"),
        ('{"schema": 1, "findings": [{"file": "a"}]}', "findings[0].resource is not a text"),
        (
            json.dumps({"schema": 1, "findings": [{**ENTRY, "class": "d"}]}),
            "findings[0].class is none of exposed, losing",
        ),
    ],
    ids=lambda value: value[:30],
)
def test_lint_with_an_invalid_baseline_exits_2_and_names_the_field(
    folder: Path, content: str, problem: str
) -> None:
    (folder / BASELINE).write_text(content)
    result = _run("shop.yaml", "--baseline", BASELINE)
    assert result.exit_code == 2
    assert problem in " ".join(result.stderr.split())
    assert (folder / BASELINE).read_text() == content


def test_write_baseline_without_a_file_exits_2(folder: Path) -> None:
    assert (folder / "shop.yaml").exists()
    assert _run("shop.yaml", "--write-baseline").exit_code == 2


@pytest.mark.parametrize(
    ("options", "problem"), [(["--write-baseline"], "written"), ([], "read")], ids=str
)
def test_baseline_that_is_a_folder_exits_2_and_says_what_is_wrong(
    folder: Path, options: list[str], problem: str
) -> None:
    (folder / BASELINE).mkdir()
    result = _run("shop.yaml", "--baseline", BASELINE, *options)
    assert result.exit_code == 2
    assert f"{BASELINE} cannot be {problem}: Is a directory" in result.stderr
    assert list((folder / BASELINE).iterdir()) == []


@pytest.mark.parametrize("link_name", [BASELINE, f".{BASELINE}.new"])
def test_write_baseline_never_writes_through_a_link_and_leaves_no_other_file(
    folder: Path, link_name: str
) -> None:
    victim = folder / "victim"
    victim.write_text("mine")
    (folder / link_name).symlink_to(victim)
    _write("shop.yaml")
    assert victim.read_text() == "mine"
    names = {path.name for path in folder.iterdir()}
    assert names == {"shop.yaml", "victim", BASELINE, link_name}


def test_baseline_names_standard_input_as_a_dash(folder: Path) -> None:
    arguments = ["lint", "-", "--baseline", BASELINE]
    result = CliRunner().invoke(app, [*arguments, "--write-baseline"], input=FAULTY_TEMPLATE)
    assert result.exit_code == 0, result.output
    (entry,) = json.loads((folder / BASELINE).read_text())["findings"]
    assert entry["file"] == "-"
    result = CliRunner().invoke(app, arguments, input=FAULTY_TEMPLATE)
    assert "0 findings, 1 ignored, 1 in the baseline" in result.stdout


def test_baseline_of_more_than_4_mib_is_not_parsed(tmp_path: Path) -> None:
    path = tmp_path / BASELINE
    document = b'{"schema": 1, "findings": []}'
    path.write_bytes(document.ljust(4 * 1024 * 1024))
    assert read_baseline(path) == ()
    path.write_bytes(document.ljust(4 * 1024 * 1024 + 1))
    with pytest.raises(BaselineUnreadable, match="longer than 4,194,304 bytes"):
        read_baseline(path)
