from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from local_account.demo.farewell import NEXT, clear, farewell


def _said(folder: Path, *, is_as_claimed: bool = True, width: int = 80) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as shown:
        console.print(farewell(folder / "r.json", is_as_claimed=is_as_claimed))
    return [each.strip() for each in shown.get().splitlines() if each.strip()]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("report.html", "report.eml", "r.json"):
        Path(name).write_text("x")


def test_it_names_what_is_there_and_what_to_do_next() -> None:
    claim, page, mail, machines, head, *following = _said(Path())
    assert claim == "It ended as claimed."
    assert page == "report.html  the week's page: open it in a browser"
    assert mail.startswith("report.eml ")
    assert machines.startswith("r.json ")
    assert head == "What next"
    assert [each.split("  ")[0] for each in following] == [name for name, _ in NEXT]


def test_what_is_not_there_is_not_named() -> None:
    Path("report.html").unlink()
    assert not any("report.html" in each for each in _said(Path()))


def test_nothing_of_an_earlier_demo_stays() -> None:
    Path("mine").write_text("x")
    clear(Path(), "r.json")
    clear(Path(), "r.json")
    assert [each.name for each in Path().iterdir()] == ["mine"]


def test_what_failed_is_not_called_a_success() -> None:
    first, *_ = _said(Path(), is_as_claimed=False)
    assert first.startswith("It did not end as claimed")


def test_the_documents_that_it_names_are_there() -> None:
    root = Path(__file__).parents[3]
    assert (root / "docs" / "deploy.md").is_file()
    assert "\naccount:" in (root / "Makefile").read_text()
