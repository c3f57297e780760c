"""Test that an empty option value, such as an unset shell variable, is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.builders import Operator


@pytest.mark.parametrize("empty", ["", " "])
@pytest.mark.parametrize(
    "arguments",
    [
        ("cases", "--queue"),
        ("cases", "--symptom"),
        ("cases", "--since"),
        ("rollback", "--yes", "--since"),
        ("redrive", "orders", "--yes", "--where"),
        ("redrive", "orders", "--yes", "--all", "--rate"),
        ("redrive", "--yes", "--all"),
        ("quarantine", "drop", "orders", "--yes", "--where"),
        ("quarantine", "drop", "--yes", "--all"),
        ("quarantine", "return", "--yes", "--all"),
        ("scan", "--queue"),
        ("scan", "--prefix"),
        ("export",),
        ("drill", "--yes", "--queue"),
        ("drill", "--yes", "--record"),
    ],
    ids=" ".join,
)
def test_command_with_an_empty_or_blank_value_is_refused_and_invokes_no_lambda_and_writes_no_file(
    operator: Operator,
    arguments: tuple[str, ...],
    empty: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    result = operator.run(*arguments, empty)
    assert result.exit_code == 2, result.output
    assert operator.account.invoked == []
    assert list(tmp_path.iterdir()) == []
