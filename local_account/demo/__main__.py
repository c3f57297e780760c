"""`python -m local_account.demo`: exits with 0 only if the queues really are as it says."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.live import Live

from local_account.cannot_start import CannotStart
from local_account.demo import ending, picture, verdict
from local_account.demo.consumer import Consumer
from local_account.demo.ending import Ending
from local_account.demo.night import NightFailed
from local_account.demo.story import STORIES, BadQueue
from local_account.demo.watching import Seen, Watch, configuration
from local_account.listening import port_of
from local_account.process import REFUSED, AccountFailed, LocalAccount

RESULT = Path("build/demo/result.json")
PATIENCE_SECONDS = 60
LOOK_EVERY_SECONDS = 0.25


def main(arguments: Sequence[str] | None = None) -> int:
    """0: it ended as claimed; 1: it did not; 2: it could not be started; 130: interrupted."""
    console = Console(highlight=False)
    try:
        parser = argparse.ArgumentParser(prog="make demo")
        parser.add_argument("--story", choices=sorted(STORIES), default="lease")
        parser.add_argument("--port", type=port_of, default=0)
        chosen = parser.parse_args(arguments)
        _require_writable(RESULT.parent)
        return _run_in_account(STORIES[chosen.story], chosen.port, console)
    except CannotStart as refused:
        console.print(f"make demo: {refused}", style="red", markup=False, soft_wrap=True)
        return refused.exit_code
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


def _run_in_account(story: Sequence[BadQueue], port: int, console: Console) -> int:
    console.print("[bold]Mendq demo[/]: an AWS account on this machine, the stack deployed to it")

    def echo(line: str) -> None:
        """The account's own progress; what it does not emulate stands at the end of the story."""
        if not line.startswith(("not emulated", REFUSED)):
            console.print(f"  {line}", style="dim", markup=False, soft_wrap=True)

    try:
        with LocalAccount(port=port, on_line=echo) as account:
            return _tell(story, account, console)
    except AccountFailed as failed:
        line = f"the local account did not start: {failed}"
        console.print(line, style="red", markup=False, soft_wrap=True)
        return 2


def _tell(story: Sequence[BadQueue], account: LocalAccount, console: Console) -> int:
    watch = Watch(
        account.client("sqs"),
        account.client("s3"),
        account.client("cloudwatch"),
        account.outputs["CaseBucket"],
    )
    for bad in story:
        watch.queues[bad.name] = _make_queue(bad, account)
    _run(story, watch, account, console)
    console.print(picture.decisions(story, watch))
    console.print(picture.metrics(watch))
    ended = _end(watch, account, console)
    picture.honesty(console, account.not_emulated, account.floors_lowered)
    verdict.write_result(
        RESULT,
        watch,
        ended,
        not_emulated=account.not_emulated,
        floors_lowered=account.floors_lowered,
    )
    faults = verdict.faults(story, watch)
    if ended is not None:
        faults += verdict.incident_faults(story, watch, ended.incidents)
    for fault in faults:
        console.print(f"not as claimed: {fault}", style="bold red", soft_wrap=True)
    if not faults and ended is not None:
        console.print("\nIt ended as claimed. ", style="bold green", end="")
        console.print(f"For machines: {RESULT}")
    return int(bool(faults) or ended is None)


def _end(watch: Watch, account: LocalAccount, console: Console) -> Ending | None:
    """The night and the report; None where they failed, which is said."""
    try:
        return ending.tell(watch, account, console)
    except NightFailed as failed:
        console.print(f"not as claimed: {failed}", style="bold red", markup=False, soft_wrap=True)
        return None


def _make_queue(bad: BadQueue, account: LocalAccount) -> Seen:
    sqs = account.client("sqs")
    url = sqs.create_queue(
        QueueName=bad.name,
        Attributes={"FifoQueue": "true", "VisibilityTimeout": str(bad.visibility_seconds)},
        tags=bad.tags,
    )["QueueUrl"]
    before = configuration(sqs, url)
    return Seen(before["QueueArn"], url, before, before)


def _run(story: Sequence[BadQueue], watch: Watch, account: LocalAccount, console: Console) -> None:
    consumers = [
        Consumer(
            account.client("sqs"),
            watch.queues[bad.name].queue_url,
            bad.works_seconds,
            partial(watch.heard, bad.name),
        )
        for bad in story
    ]
    with _live(story, watch, console):
        for consumer in consumers:
            consumer.start()
        try:
            _watch_until_told(story, watch, consumers, console)
        finally:
            for consumer in consumers:
                consumer.stop()
        watch.look()


@contextmanager
def _live(story: Sequence[BadQueue], watch: Watch, console: Console) -> Iterator[None]:
    """The table below the events; what follows begins on a line of its own."""
    try:
        with Live(
            console=console,
            get_renderable=lambda: picture.standing(story, watch, console.width),
            refresh_per_second=4,
        ):
            yield
    finally:
        if not console.is_terminal:
            console.line()  # Live does that on terminals alone


def _watch_until_told(
    story: Sequence[BadQueue], watch: Watch, consumers: Sequence[Consumer], console: Console
) -> None:
    while watch.seconds() < PATIENCE_SECONDS:
        for (name, fault), times in watch.outcomes_since().items():
            console.print(picture.deletes_event(watch, name, fault, times))
        for case in watch.look():
            console.print(picture.case_event(watch, case))
        for bad, consumer in zip(story, consumers, strict=True):
            if watch.queues[bad.name].case and not bad.is_to_be_mended:
                consumer.put_down()
        decided = all(watch.queues[bad.name].case for bad in story)
        shown = all(watch.queues[bad.name].deletes_in_time for bad in story if bad.is_to_be_mended)
        if decided and shown:
            return
        time.sleep(LOOK_EVERY_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
