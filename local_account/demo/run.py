"""Run the demo's stories, each on its own local account, and check their claims."""

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
from local_account.demo.story import Story, read_stories
from local_account.emulator_environment import parse_port
from local_account.process import REFUSAL_PREFIX, AccountFailed, LocalAccount
from local_account.where import WRONG_USE_EXIT_CODE, CannotStart

RESULT_PATH = Path("build/demo/result.json")
# Files that the demo writes, and a description of each.
FILE_NAMES_AND_DESCRIPTIONS = (
    (nightly.REPORT_FILE_NAME, "that page, copied out of the account: open it in a browser"),
    (nightly.MAIL_FILE_NAME, "the same as a mail, for any mail program"),
    (mailbox.NOTIFICATIONS_FILE_NAME, "what people were notified of"),
    (RESULT_PATH.name, "all of it, for machines"),
)
STAGE_BY_STORY: Mapping[str, type[Stage]] = {"redrive": RedriveStage}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo and return its exit code.

    The code is 0 if every claim holds, 1 if not, 2 if the demo or an account did not start, 130
    after Ctrl-C.
    """
    console = picture.make_console()
    try:
        parser = argparse.ArgumentParser(prog="make demo")
        parser.add_argument("--story", type=read_stories, default="visibility")
        parser.add_argument("--port", type=parse_port, default=0)
        options = parser.parse_args(arguments)
        _lock_folder(RESULT_PATH.parent)
        return _run_stories(options.story, options.port, console)
    except (CannotStart, AccountFailed) as error:
        console.print(f"make demo: {error}", style="red", markup=False, soft_wrap=True)
        return error.exit_code if isinstance(error, CannotStart) else WRONG_USE_EXIT_CODE
    except KeyboardInterrupt:
        console.print("interrupted: the account and its queues are gone", style="red")
        return 128 + signal.SIGINT


def _lock_folder(folder: Path) -> None:
    """Create the folder of the results, and lock it until this process ends.

    Raises CannotStart if another demo has locked the folder, or if it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock_file = os.open(folder / ".taken", os.O_WRONLY | os.O_CREAT)
        fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise CannotStart(f"another demo writes to {folder}: wait until it ends") from error
    except OSError as error:
        raise CannotStart(f"the folder {folder} cannot be written ({error.strerror})") from error


def _run_stories(stories: Mapping[str, Story], port: int, console: Console) -> int:
    """Run the stories and return the exit code.

    Each story has its own account, because the failed calls of one story would look like a mass
    symptom in the next. At the end, the folder has the last report that a story made, and the
    notifications and the result of all stories.
    """
    folder = RESULT_PATH.parent
    results: list[verdict.Result] = []
    have_all_claims_held = True
    for name, _ in FILE_NAMES_AND_DESCRIPTIONS:
        (folder / name).unlink(missing_ok=True)
    for name, story in stories.items():
        if len(stories) > 1:
            console.print(picture.make_rule(f"story: {name}", "green"))
        result, all_claims_hold = _run_in_account(name, story, port, console)
        results.append(result)
        have_all_claims_held = have_all_claims_held and all_claims_hold
    RESULT_PATH.write_text(
        json.dumps(verdict.join_results(results), indent=2, sort_keys=True) + "\n"
    )
    paths_and_descriptions = [
        (folder / name, description) for name, description in FILE_NAMES_AND_DESCRIPTIONS
    ]
    console.print(
        picture.draw_farewell(paths_and_descriptions, have_all_claims_held=have_all_claims_held)
    )
    return 0 if have_all_claims_held else 1


# The beginnings of account lines that the demo does not print at once. Differences from AWS are
# printed at the end, and errors with the exception. The others are useful only for an account that
# keeps running.
_HIDDEN_LINE_PREFIXES = ("not emulated", "floor lowered", REFUSAL_PREFIX, "ready ", "export ")


def _run_in_account(
    name: str, story: Story, port: int, console: Console
) -> tuple[verdict.Result, bool]:
    """Run a story on a new account. Return its result, and True if every claim holds.

    Raises AccountFailed if the account does not start.
    """
    console.print("[bold]Mendq demo[/]: an AWS account on this machine, the stack deployed to it")

    def print_line(line: str) -> None:
        """Print a line of the account, unless it is one of the hidden lines."""
        if not line.startswith(_HIDDEN_LINE_PREFIXES):
            console.print(f"  {line}", style="dim", markup=False, soft_wrap=True)

    with LocalAccount(nightly.ACCOUNT_SETTINGS, port, on_line=print_line) as account:
        stage = STAGE_BY_STORY.get(name, Stage)(story, account, console)
        stage.run()
        return _finish_story(name, stage, RESULT_PATH.parent)


def _finish_story(name: str, stage: Stage, folder: Path) -> tuple[verdict.Result, bool]:
    """Show the decisions, run the nightly and the weekly job, and check the story's claims.

    Return the story's result, and True if every claim holds.
    """
    console = stage.console
    watcher = stage.watcher
    picture.print_all(console, *picture.draw_decisions(stage.story, watcher))
    picture.print_all(
        console,
        *picture.draw_notifications(stage.mailbox, folder / mailbox.NOTIFICATIONS_FILE_NAME),
    )
    story_ending = None
    try:
        story_ending = nightly.run_jobs(stage, folder)
    except ScriptFailed as error:
        stage.faults.append(f"{error}")
    stage.mailbox.receive_new()
    messages = stage.mailbox.messages
    if story_ending:
        messages = [
            message for message in messages if message is not story_ending.report_notification
        ]
    mailbox.append_to_file(messages, folder / mailbox.NOTIFICATIONS_FILE_NAME)
    incidents = story_ending.incidents if story_ending else []
    claims = [(fault, False) for fault in stage.faults]
    claims += verdict.list_claims(stage.story, watcher, messages, incidents)
    if story_ending:
        claims += verdict.list_week_claims(stage.story, story_ending.report_notification.subject)
    other_result_fields = {
        "stories": [name],
        "claims": [
            {"claim": claim_text, "holds": is_claim_true} for claim_text, is_claim_true in claims
        ],
        "notifications": len(messages),
        "incidents": len(incidents) if story_ending else None,
        "report": str(folder / nightly.REPORT_FILE_NAME) if story_ending else None,
        "not_emulated": stage.account.not_emulated,
        "floors_lowered": [*stage.account.floors_lowered, *stage.floors_lowered],
        "clock_put_forward": stage.clock_put_forward,
        "messages": stage.messages or None,
    }
    picture.print_all(console, *picture.draw_differences(other_result_fields, RESULT_PATH))
    picture.print_all(console, *picture.draw_claims(claims))
    return verdict.make_result(watcher, other_result_fields), all(
        is_claim_true for _, is_claim_true in claims
    )
