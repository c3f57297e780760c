"""`python -m local_account.demo`: exits with 0 only if the queues really are as it says."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from local_account.cannot_start import CannotStart
from local_account.demo import ending, pages, picture, verdict
from local_account.demo.ending import Ending
from local_account.demo.farewell import MAIL, clear, farewell
from local_account.demo.honesty import Honesty
from local_account.demo.mailbox import Mailbox
from local_account.demo.night import NightFailed
from local_account.demo.setting import set_up
from local_account.demo.stories import stories_of
from local_account.demo.story import Story
from local_account.demo.telling import Telling
from local_account.demo.watching import Watch
from local_account.listening import port_of
from local_account.process import REFUSED, AccountFailed, LocalAccount

RESULT = Path("build/demo/result.json")


def main(arguments: Sequence[str] | None = None) -> int:
    """0: it ended as claimed; 1: it did not; 2: it could not be started; 130: interrupted."""
    console = Console(highlight=False)
    try:
        parser = argparse.ArgumentParser(prog="make demo")
        parser.add_argument("--story", type=stories_of, default="lease")
        parser.add_argument("--port", type=port_of, default=0)
        chosen = parser.parse_args(arguments)
        _require_writable(RESULT.parent)
        return _run(chosen.story, chosen.port, console)
    except CannotStart as refused:
        console.print(f"make demo: {refused}", style="red", markup=False, soft_wrap=True)
        return refused.exit_code
    except AccountFailed as failed:
        line = f"the local account did not start: {failed}"
        console.print(line, style="red", markup=False, soft_wrap=True)
        return 2
    except KeyboardInterrupt:
        console.print("interrupted: the account and its queues are gone", style="red")
        return 128 + signal.SIGINT


def _require_writable(folder: Path) -> None:
    """Before a minute of story, not after it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise CannotStart(f"the folder {folder} cannot be written ({error.strerror})") from error


def _run(stories: Mapping[str, Story], port: int, console: Console) -> int:
    """One account for each: what fails in one story would speak for a mass symptom in the next.

    Several have a folder each; the last one's page, and the pages of all, stand beside those.
    """
    folder, told = RESULT.parent, list[Told]()
    clear(folder, RESULT.name)
    for name, story in stories.items():
        if len(stories) > 1:
            console.rule(f"story: {name}", align="left")
        own = folder if len(stories) == 1 else folder / name
        told.append(_run_in_account(story, port, console, own))
    result = verdict.joined([each.result for each in told])
    if len(stories) > 1:
        pages.join([folder / name / pages.NAME for name in stories], folder / pages.NAME)
        if result["report"]:
            shutil.copy(Path(result["report"]).with_name(MAIL), folder)
            result["report"] = str(shutil.copy(result["report"], folder))
    verdict.write_result(RESULT, result)
    is_as_claimed = all(each.is_as_claimed for each in told)
    console.print(farewell(RESULT, is_as_claimed=is_as_claimed))
    return 0 if is_as_claimed else 1


@dataclass(frozen=True)
class Told:
    """A story that was told to its end, for machines; whether it ended as it claims."""

    result: verdict.Result
    is_as_claimed: bool


def _run_in_account(story: Story, port: int, console: Console, folder: Path) -> Told:
    """Raise AccountFailed where the account does not start."""
    console.print("[bold]Mendq demo[/]: an AWS account on this machine, the stack deployed to it")

    def echo(line: str) -> None:
        """The account's own progress; what it does not emulate stands at the end of the story."""
        if not line.startswith(("not emulated", REFUSED)):
            console.print(f"  {line}", style="dim", markup=False, soft_wrap=True)

    with LocalAccount(ending.SETTINGS, port, on_line=echo) as account:
        return _tell(story, account, console, folder)


def _tell(story: Story, account: LocalAccount, console: Console, folder: Path) -> Told:
    watch = Watch(
        account.client("sqs"),
        account.client("s3"),
        account.client("cloudwatch"),
        account.outputs["CaseBucket"],
    )
    mailbox = Mailbox.open(account)
    running = set_up(story, watch, account)
    console.print(picture.cast(story))
    telling = Telling(story, account, watch, mailbox, console)
    telling.tell(running)
    console.print(picture.decisions(story, watch))
    console.print(picture.metrics(watch))
    console.print(pages.shown(mailbox.messages, mailbox.notices, folder / pages.NAME))
    ended = _end(watch, mailbox, account, console, folder)
    honesty = Honesty.of(account, telling.clock_put_forward, telling.floors_lowered)
    console.print(honesty.shown())
    mailbox.look()
    paged = [each for each in mailbox.messages if ended is None or each is not ended.verdict]
    pages.write(paged, folder / pages.NAME)
    faults = [*telling.faults, *verdict.faults(story, watch)]
    faults += verdict.page_faults(story, watch, paged)
    faults += verdict.alarm_faults(story, mailbox.notices)
    if ended is not None:
        faults += verdict.incident_faults(story, watch, ended.incidents)
    for fault in faults:
        console.print(f"not as claimed: {fault}", style="bold red", soft_wrap=True, markup=False)
    result = verdict.result_of(watch, ended, len(paged), honesty, telling.letters)
    return Told(result, is_as_claimed=not faults and ended is not None)


def _end(
    watch: Watch, mailbox: Mailbox, account: LocalAccount, console: Console, folder: Path
) -> Ending | None:
    """The night and the report; None where they failed, which is said."""
    try:
        return ending.tell(watch, mailbox, account, console, folder)
    except NightFailed as failed:
        console.print(f"not as claimed: {failed}", style="bold red", markup=False, soft_wrap=True)
        return None


if __name__ == "__main__":
    sys.exit(main())
