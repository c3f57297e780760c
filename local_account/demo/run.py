"""Run the demo's stories, each on its own local account, and check what they claim."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from local_account.demo import mailbox, nightly, picture, verdict
from local_account.demo.redrive import RedriveStage
from local_account.demo.stage import ScriptFailed, Stage
from local_account.demo.story import Story, stories_of
from local_account.emulator_environment import port_of
from local_account.process import REFUSED, AccountFailed, LocalAccount
from local_account.where import WRONG_USE, CannotStart

RESULT = Path("build/demo/result.json")
# Files that the demo leaves, with what they are.
FILES = (
    (nightly.REPORT, "that page, copied out of the account: open it in a browser"),
    (nightly.MAIL, "the same as a mail, for any mail program"),
    (mailbox.FILE, "what people were notified of"),
    (RESULT.name, "all of it, for machines"),
)
STAGES: Mapping[str, type[Stage]] = {"redrive": RedriveStage}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo and return its exit code.

    The code is 0 if every claim holds, 1 if not, 2 if the demo did not start, 130 after Ctrl-C.
    """
    console = picture.console()
    try:
        parser = argparse.ArgumentParser(prog="make demo")
        parser.add_argument("--story", type=stories_of, default="visibility")
        parser.add_argument("--port", type=port_of, default=0)
        options = parser.parse_args(arguments)
        _lock(RESULT.parent)
        return _run(options.story, options.port, console)
    except (CannotStart, AccountFailed) as failed:
        console.print(f"make demo: {failed}", style="red", markup=False, soft_wrap=True)
        return getattr(failed, "exit_code", WRONG_USE)
    except KeyboardInterrupt:
        console.print("interrupted: the account and its queues are gone", style="red")
        return 128 + signal.SIGINT


def _lock(folder: Path) -> None:
    """Lock the folder of the results until this process ends.

    Raises CannotStart if another demo has locked it, or if it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock_file = os.open(folder / ".taken", os.O_WRONLY | os.O_CREAT)
        fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise CannotStart(f"another demo writes to {folder}: wait until it ends") from error
    except OSError as error:
        raise CannotStart(f"the folder {folder} cannot be written ({error.strerror})") from error


def _run(stories: Mapping[str, Story], port: int, console: Console) -> int:
    """Run the stories and return the exit code.

    Each story has its own account, because the failed calls of one would look like a mass symptom
    in the next. The files of the last story's report are left, and the notifications of all.
    """
    folder = RESULT.parent
    results: list[verdict.Result] = []
    is_as_claimed = True
    for name, _ in FILES:
        (folder / name).unlink(missing_ok=True)
    for name, story in stories.items():
        if len(stories) > 1:
            console.print(picture.rule(f"story: {name}", "green"))
        result, holds = _run_in_account(name, story, port, console)
        results.append(result)
        is_as_claimed = is_as_claimed and holds
    RESULT.write_text(json.dumps(verdict.join_results(results), indent=2, sort_keys=True) + "\n")
    files = [(folder / name, description) for name, description in FILES]
    console.print(picture.farewell(files, is_as_claimed=is_as_claimed))
    return 0 if is_as_claimed else 1


# Lines of the account that the demo does not show at once: differences from AWS come at the end,
# errors come with the exception, and the rest is for an account that stays.
_NOT_SHOWN = ("not emulated", "floor lowered", REFUSED, "ready ", "export ")


def _run_in_account(
    name: str, story: Story, port: int, console: Console
) -> tuple[verdict.Result, bool]:
    """Run a story. Return its result, and True if every claim holds.

    Raises AccountFailed if the account does not start.
    """
    console.print("[bold]Mendq demo[/]: an AWS account on this machine, the stack deployed to it")

    def echo(line: str) -> None:
        """Print a line about the account's progress."""
        if not line.startswith(_NOT_SHOWN):
            console.print(f"  {line}", style="dim", markup=False, soft_wrap=True)

    with LocalAccount(nightly.SETTINGS, port, on_line=echo) as account:
        stage = STAGES.get(name, Stage)(story, account, console)
        stage.run()
        return _finish(name, stage, RESULT.parent)


def _finish(name: str, stage: Stage, folder: Path) -> tuple[verdict.Result, bool]:
    """Show the decisions, run the nightly job, and check the story's claims.

    Return the story's result, and True if every claim holds.
    """
    console = stage.console
    watch = stage.watch
    picture.show(console, *picture.decisions(stage.story, watch))
    picture.show(console, *picture.notified(stage.mailbox, folder / mailbox.FILE))
    ending = None
    try:
        ending = nightly.end(stage, folder)
    except ScriptFailed as error:
        stage.faults.append(f"{error}")
    stage.mailbox.look()
    messages = stage.mailbox.messages
    if ending:
        messages = [message for message in messages if message is not ending.verdict]
    mailbox.write(messages, folder / mailbox.FILE)
    incidents = ending.incidents if ending else []
    claims = [(fault, False) for fault in stage.faults]
    claims += verdict.claims(stage.story, watch, messages, incidents)
    if ending:
        claims += verdict.claims_about_week(stage.story, ending.verdict.subject)
    other_fields = {
        "stories": [name],
        "claims": [{"claim": words, "holds": holds} for words, holds in claims],
        "notifications": len(messages),
        "incidents": len(incidents) if ending else None,
        "report": str(folder / nightly.REPORT) if ending else None,
        "not_emulated": stage.account.not_emulated,
        "floors_lowered": [*stage.account.floors_lowered, *stage.floors_lowered],
        "clock_put_forward": stage.clock_put_forward,
        "messages": stage.messages or None,
    }
    picture.show(console, *picture.not_emulated(other_fields, RESULT))
    picture.show(console, *picture.claim_lines(claims))
    return verdict.result_of(watch, other_fields), all(holds for _, holds in claims)
