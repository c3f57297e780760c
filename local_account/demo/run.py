"""The demo: its stories, each on an account of its own, and whether all is as it says."""

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
LEFT = (
    (nightly.REPORT, "that page, copied out of the account: open it in a browser"),
    (nightly.MAIL, "the same as a mail, for any mail program"),
    (mailbox.FILE, "what people were notified of"),
    (RESULT.name, "all of it, for machines"),
)
STAGES: Mapping[str, type[Stage]] = {"redrive": RedriveStage}


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0: it ended as claimed; 1: it did not; 2: it did not start; 130: interrupted."""
    console = picture.console()
    try:
        parser = argparse.ArgumentParser(prog="make demo")
        parser.add_argument("--story", type=stories_of, default="visibility")
        parser.add_argument("--port", type=port_of, default=0)
        chosen = parser.parse_args(arguments)
        _take(RESULT.parent)
        return _run(chosen.story, chosen.port, console)
    except (CannotStart, AccountFailed) as failed:
        console.print(f"make demo: {failed}", style="red", markup=False, soft_wrap=True)
        return getattr(failed, "exit_code", WRONG_USE)
    except KeyboardInterrupt:
        console.print("interrupted: the account and its queues are gone", style="red")
        return 128 + signal.SIGINT


def _take(folder: Path) -> None:
    """Keep other demos out until this process ends; raises CannotStart before a minute of story."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken = os.open(folder / ".taken", os.O_WRONLY | os.O_CREAT)
        fcntl.flock(taken, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise CannotStart(f"another demo writes to {folder}: wait until it ends") from error
    except OSError as error:
        raise CannotStart(f"the folder {folder} cannot be written ({error.strerror})") from error


def _run(stories: Mapping[str, Story], port: int, console: Console) -> int:
    """Run each on an account of its own: failures of one would be a mass symptom in the next.

    What is left is the last one's page, and the notifications of all.
    """
    folder, results, is_as_claimed = RESULT.parent, list[verdict.Result](), True
    for name, _ in LEFT:
        (folder / name).unlink(missing_ok=True)
    for name, story in stories.items():
        if len(stories) > 1:
            console.print(picture.rule(f"story: {name}", "green"))
        result, holds = _run_in_account(name, story, port, console)
        results.append(result)
        is_as_claimed = is_as_claimed and holds
    RESULT.write_text(json.dumps(verdict.joined(results), indent=2, sort_keys=True) + "\n")
    left = [(folder / name, says) for name, says in LEFT]
    console.print(picture.farewell(left, is_as_claimed=is_as_claimed))
    return 0 if is_as_claimed else 1


# Said at the end, by a fault, or to who may call an account that stays.
_LEFT_OUT = ("not emulated", "floor lowered", REFUSED, "ready ", "export ")


def _run_in_account(
    name: str, story: Story, port: int, console: Console
) -> tuple[verdict.Result, bool]:
    """Return the result, and whether it ended as claimed; raise AccountFailed."""
    console.print("[bold]Mendq demo[/]: an AWS account on this machine, the stack deployed to it")

    def echo(line: str) -> None:
        """Print the account's own progress; how it differs from AWS's stands at the end."""
        if not line.startswith(_LEFT_OUT):
            console.print(f"  {line}", style="dim", markup=False, soft_wrap=True)

    with LocalAccount(nightly.SETTINGS, port, on_line=echo) as account:
        stage = STAGES.get(name, Stage)(story, account, console)
        stage.run()
        return _judged(name, stage, RESULT.parent)


def _judged(name: str, stage: Stage, folder: Path) -> tuple[verdict.Result, bool]:
    """Run the nightly job, and compare what the story claims with what is there."""
    console, watch, box, ending = stage.console, stage.watch, stage.mailbox, None
    picture.show(console, *picture.decisions(stage.story, watch))
    picture.show(console, *picture.notified(box, folder / mailbox.FILE))
    try:
        ending = nightly.end(stage, folder)
    except ScriptFailed as failed:
        stage.faults.append(f"{failed}")
    box.look()
    messages = [each for each in box.messages if not ending or each is not ending.verdict]
    mailbox.write(messages, folder / mailbox.FILE)
    incidents = ending.incidents if ending else []
    claims = [(each, False) for each in stage.faults]
    claims += verdict.claims(stage.story, watch, messages, incidents)
    claims += verdict.of_week(stage.story, ending.verdict.subject) if ending else ()
    said = {
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
    picture.show(console, *picture.pretended(said, RESULT), *picture.claimed(claims))
    return verdict.result_of(watch, said), all(holds for _, holds in claims)
