"""`pip install .`: the wheel holds the engine alone, and runs every command."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUN = """
import sys
sys.path[:0] = sys.argv[1:3]
del sys.argv[1:3]
from mendq.cli.__main__ import main
main()
"""
TEMPLATE = """
Resources:
  Orders: {Type: AWS::SQS::Queue, Properties: {VisibilityTimeout: 10}}
  Bill: {Type: AWS::Lambda::Function, Properties: {Timeout: 10}}
  BillOrders:
    Type: AWS::Lambda::EventSourceMapping
    Properties: {EventSourceArn: !GetAtt Orders.Arn, FunctionName: !Ref Bill}
"""
RECORD = '{"eventSource": "sqs.amazonaws.com", "eventName": "DeleteMessage"}'


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from what git tracks and unpacked."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "mendq", "pyproject.toml", "README.md", "LICENSE"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout.split("\0")
    for name in filter(None, tracked):
        copy = folder / "source" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((ROOT / name).read_bytes())
    source = folder / "source"
    subprocess.run([*pip, "--wheel-dir", str(folder), str(source)], check=True, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as zipped:
        zipped.extractall(folder / "unpacked")
    return folder / "unpacked"


def _mendq(unpacked: Path, cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `mendq` with the wheel and the libraries, and nothing else of the repository."""
    libraries = sysconfig.get_path("purelib")
    return subprocess.run(
        [sys.executable, "-S", "-c", RUN, str(unpacked), libraries, *words],
        cwd=cwd,
        env={"HOME": str(cwd), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=False,
        text=True,
    )


def test_it_holds_the_engine_and_its_page_alone(unpacked: Path) -> None:
    assert {each.name.split("-")[0] for each in unpacked.iterdir()} == {"mendq"}
    assert [*unpacked.glob("mendq/report/template/*.html.j2")]


def test_it_declares_what_it_imports() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {each.split(">")[0] for each in project["dependencies"]}
    assert named == {"boto3", "jmespath", "msgspec", "rich", "typer"}


def test_help_explain_and_lint_run(unpacked: Path, tmp_path: Path) -> None:
    (tmp_path / "queue.yaml").write_text(TEMPLATE)
    (tmp_path / "record.json").write_text(RECORD)
    shown = _mendq(unpacked, tmp_path, "--help")
    assert (shown.returncode, "rollback" in shown.stdout) == (0, True), shown.stderr
    explained = _mendq(unpacked, tmp_path, "explain", "record.json", "--json")
    assert '"not_failed"' in explained.stdout, explained.stderr
    linted = _mendq(unpacked, tmp_path, "lint", "queue.yaml", "--format", "json")
    assert '"dlq_missing"' in linted.stdout, linted.stderr


@pytest.mark.parametrize("command", ["cost", "doctor"])
def test_what_asks_an_account_gets_as_far_as_asking(
    unpacked: Path, tmp_path: Path, command: str
) -> None:
    asked = _mendq(unpacked, tmp_path, command, "--region", "us-east-1")
    assert (asked.returncode, asked.stdout.count("Traceback")) == (1, 0)
    assert asked.stderr.startswith("mendq: no credentials"), asked.stderr


def test_a_template_is_priced_without_the_lambdas(unpacked: Path, tmp_path: Path) -> None:
    priced = "from mendq.cli.cost.bill import Deployed, lines; lines(Deployed({'Resources': {}}))"
    libraries = sysconfig.get_path("purelib")
    path = f"import sys; sys.path[:0] = {[str(unpacked), libraries]!r}; {priced}"
    subprocess.run([sys.executable, "-S", "-c", path], cwd=tmp_path, check=True)
