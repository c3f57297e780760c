"""`mendq runbook NAME`: print the runbook of a symptom, an alarm or a refusal code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

import mendq
from mendq.cli.commands import CommandKind, command
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation
from mendq.cli.output import Output
from mendq.notifications.commands import runbook_command

# The wheel has the runbooks inside the package, a clone of the repository among its documents.
_PACKAGE_FOLDER = Path(mendq.__file__).parent
RUNBOOK_FOLDERS = (_PACKAGE_FOLDER / "runbooks", _PACKAGE_FOLDER.parent / "docs" / "runbooks")
# The page that explains the refusal codes that any symptom can have.
_OVERVIEW = "README"
_ALARM_PREFIX = "mendq-"
_FIRST_SECTION_OF_BACKGROUND = "## Why"
_FENCE = "```"
_RELATIVE_LINK_PATTERN = re.compile(r"\[([^\]]+)\]\((?!https://)[^)]*\)")
# A line of the overview about an alarm, such as "- `mendq-own-dlq`: own_dlq".
_ALARM_PATTERN = re.compile(r"^- `(mendq-[a-z-]+)`: ([a-z_]+)$", re.MULTILINE)
_DERIVED_MARK_PATTERN = re.compile(r"<!--.*?-->\n?", re.DOTALL)


@command(9, CommandKind.OFFLINE)
def runbook(
    call: Invocation,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A symptom, an alarm, a refusal code, or the path of a runbook.",
        ),
    ],
    why: Annotated[
        bool, typer.Option("--why", help="Print the background too: how Mendq decides.")
    ] = False,
) -> None:
    """Print what to do about a symptom, an alarm or a refusal.

    Examples:
      mendq runbook dlq_missing
      mendq runbook mendq-fixes-spike  # an alarm
      mendq runbook mass_symptom --why # a refusal code
    """
    text_by_page = _read_runbooks()
    page = _find_page(name, text_by_page)
    if page is not None:
        text = text_by_page[page]
        _print_runbook(call.out, text if why else _leave_out_background(text))
        if not why:
            call.out.say(f"\nHow Mendq decides: {runbook_command(page, '--why')}", "dim")
        call.out.print_json({"runbook": page, "text": text})
        return
    passages = list(_list_passages(_read_code(name), text_by_page))
    if not passages:
        raise CommandError(_describe_unknown_name(name, text_by_page), Exit.NOT_FOUND)
    for page, passage in passages:
        call.out.say_heading("any symptom" if page == _OVERVIEW else page)
        call.out.say_indented(passage)
    call.out.print_json({"passages": [{"runbook": page, "text": text} for page, text in passages]})


def _read_runbooks() -> dict[str, str]:
    """Return the text of each runbook by its name.

    Raises CommandError if the installation has no runbooks.
    """
    for folder in RUNBOOK_FOLDERS:
        if folder.is_dir():
            return {
                path.stem: _simplify(path.read_text("utf-8"))
                for path in sorted(folder.glob("*.md"))
            }
    raise CommandError("this installation has no runbooks: install the wheel of Mendq again")


def _simplify(text: str) -> str:
    """Return a runbook without marks for programs, and with the bare text of relative links."""
    return _RELATIVE_LINK_PATTERN.sub(r"\1", _DERIVED_MARK_PATTERN.sub("", text))


def _find_page(name: str, text_by_page: dict[str, str]) -> str | None:
    """Return the runbook with this name, or that of the alarm with this name; None if neither."""
    page = name.removeprefix("docs/").removeprefix("runbooks/").removesuffix(".md")
    if page in text_by_page and page != _OVERVIEW:
        return page
    if not name.startswith(_ALARM_PREFIX):
        return None
    # An alarm of one resource, such as mendq-own-dlq-intake, has the name of the resource behind.
    words = name.removeprefix(_ALARM_PREFIX).split("-")
    page_by_alarm: dict[str, str] = dict(_ALARM_PATTERN.findall(text_by_page[_OVERVIEW]))
    for word_count in range(len(words), 0, -1):
        alarm = _ALARM_PREFIX + "-".join(words[:word_count])
        if alarm in page_by_alarm:
            return page_by_alarm[alarm]
    return None


def _read_code(name: str) -> str:
    """Return the code of a refusal as Mendq prints it, such as `refused: mass_symptom`."""
    return name.rpartition(":")[2].strip()


def _list_passages(code: str, text_by_page: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each runbook and paragraph or table row that mentions a refusal code.

    The overview, which explains the codes of all symptoms, comes first.
    """
    pages = sorted(text_by_page, key=lambda page: (page != _OVERVIEW, page))
    for page in pages:
        for passage in _split_passages(text_by_page[page]):
            if f"`{code}`" in passage:
                yield page, passage


def _split_passages(text: str) -> Iterator[str]:
    """Yield the paragraphs of a page, and each row of its tables, as one line each."""
    for paragraph in text.split("\n\n"):
        lines = paragraph.strip().splitlines()
        if lines and lines[0].startswith("|"):
            for line in lines:
                yield ": ".join(cell.strip() for cell in line.strip("| ").split(" | "))
        elif lines:
            yield from _split_list(lines)


def _split_list(lines: Sequence[str]) -> Iterator[str]:
    """Yield each item of a list as one line, or a paragraph as one line."""
    item_lines = list[str]()
    for line in lines:
        if line.startswith("- ") and item_lines:
            yield " ".join(item_lines)
            item_lines = []
        item_lines.append(line.strip())
    yield " ".join(item_lines)


def _leave_out_background(text: str) -> str:
    """Return the part of a runbook that a person on call needs first."""
    return text.partition(_FIRST_SECTION_OF_BACKGROUND)[0].rstrip()


def _print_runbook(out: Output, text: str) -> None:
    """Print a page. Commands keep their line, so that they can be pasted."""
    is_in_fence = False
    # `say_heading` prints a blank line before a heading.
    for line in text.replace("\n\n#", "\n#").splitlines():
        if line.strip() == _FENCE:
            is_in_fence = not is_in_fence
        elif is_in_fence:
            out.say_own_document_line(f"  {line}")
        elif line.startswith("#"):
            out.say_heading(line.lstrip("# "))
        else:
            out.say_own_document_line(line)


def _describe_unknown_name(name: str, text_by_page: dict[str, str]) -> str:
    known_pages = [page for page in sorted(text_by_page) if page != _OVERVIEW]
    close_pages = get_close_matches(name, known_pages, 1)
    if close_pages:
        return f"no runbook is called {name[:80]!r}. Did you mean {close_pages[0]}?"
    return f"no runbook is called {name[:80]!r}. There are: {', '.join(known_pages)}"
