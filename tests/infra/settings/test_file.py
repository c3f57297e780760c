"""A file of settings that cannot be used is told in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.settings.file import FileRefused, object_in


def test_lines_and_braces_are_json(tmp_path: Path) -> None:
    path = tmp_path / "prod.json"
    path.write_text('{\n  "mode": "heal"\n}\n')
    assert object_in(path) == {"mode": "heal"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read"),
        ("", "is not JSON"),
        ('{"mode": }', "is not JSON"),
        ('["heal"]', "is not an object"),
    ],
)
def test_what_holds_no_settings_is_refused(tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "prod.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(FileRefused, match=said) as refused:
        object_in(path)
    assert str(refused.value).startswith(f"SETTINGS {path} ")
