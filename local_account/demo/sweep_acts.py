"""What a sweep finds where no call fails: counted for real, put back in time, mended or paged."""

from __future__ import annotations

from dataclasses import dataclass

from functions.aws import ledger_items as items
from local_account.demo.deployed_schedule import SWEEP, DeployedSchedule
from local_account.demo.operator_shell import DONE
from local_account.demo.stage import Stage
from local_account.demo.story import BadQueue

# Longer than the hour that has to be measured, and what CloudWatch lags behind.
PUT_BACK_MINUTES = 66
AN_HOUR = "an hour is measured at least"
MESSAGES = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")


@dataclass(frozen=True)
class FoundWithoutAnError:
    """Calls go on until enough is counted; then the deployed sweep looks.

    `counted` are the queues that are called, `drains` the one of them whose calls go on after it
    is mended, until every message is done; `every` are all that the sweep finds something about.
    """

    counted: tuple[BadQueue, ...]
    drains: BadQueue
    every: tuple[BadQueue, ...]

    def tell(self, stage: Stage) -> None:
        names = [each.name for each in self.counted]
        self._begin(stage, names)
        stage.until(
            lambda: all(_is_counted(stage, each) for each in self.counted),
            f"enough calls of {' and '.join(names)}",
        )
        stage.say("act", "not one call has failed; CloudWatch has counted them all")
        stage.end([name for name in names if name != self.drains.name])
        # A minute first, so that the last one that is measured is quiet as well.
        put_back(stage, names, (1, PUT_BACK_MINUTES - 1), AN_HOUR)
        stage.mendq("sweep", "--dry-run", code=DONE)
        sweep_now(stage)
        for each in self.every:
            stage.until_in([each.name], each.state)
        stage.say(self.drains.name, "is mended: each message is done once, and it drains")
        stage.until(lambda: _is_drained(stage, self.drains), f"{self.drains.name} to drain")
        stage.end([self.drains.name])

    def _begin(self, stage: Stage, names: list[str]) -> None:
        """Twice a minute back: the first whole minute that is measured is an empty queue's."""
        for name in names:
            for _ in range(2):
                stage.account.put_back(stage.seen(name).queue_arn, minutes=1)
        stage.begin(names)


def put_back(stage: Stage, names: list[str], pieces: tuple[int, ...], why: str) -> None:
    """Have their past be so many minutes earlier, piece by piece, and say so."""
    for name in names:
        for minutes in pieces:
            stage.account.put_back(stage.seen(name).queue_arn, minutes=minutes)
    said = (
        f"what was counted on {' and '.join(names)} is put back by {sum(pieces)} min "
        f"instead of waiting: {why}"
    )
    stage.clock_put_forward.append(said)
    stage.say("clock", said, "yellow")


def sweep_now(stage: Stage) -> None:
    """A round an hour: where this hour's was before the story, it begins once more."""
    table = stage.account.outputs["LedgerTable"]
    note = items.key(items.ACCOUNT, "sweep")
    stage.account.client("dynamodb").delete_item(TableName=table, Key=note)
    DeployedSchedule.of(stage.account, SWEEP).fire()
    said = "the hour's sweep is begun now instead of within ten minutes"
    stage.clock_put_forward.append(said)
    stage.say("clock", said, "yellow")


def _is_counted(stage: Stage, bad: BadQueue) -> bool:
    return stage.seen(bad.name).calls_well >= bad.traffic.convincing


def _is_drained(stage: Stage, bad: BadQueue) -> bool:
    found = stage.account.client("sqs").get_queue_attributes(
        QueueUrl=stage.seen(bad.name).queue_url, AttributeNames=list(MESSAGES)
    )["Attributes"]
    return not any(int(found[name]) for name in MESSAGES)
