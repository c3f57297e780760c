"""Two hundred letters die; what killed them is mended; those that can be handled are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from functions.healing.redrive_course import Course
from functions.healing.signs import CLOUDTRAIL_LAG
from functions.healing.states import State
from local_account.demo.acts import A_MINUTE, longer_lease, put_forward
from local_account.demo.operator_shell import DONE
from local_account.demo.redrive import floors
from local_account.demo.redrive.conserved import Conserved, conserved, order_ids_in
from local_account.demo.redrive.dying import (
    LETTERS,
    RECEIPTS,
    Beside,
    careless_of,
    die_and_mend,
    open_beside,
)
from local_account.demo.redrive.fleet import consuming
from local_account.demo.redrive.going_back import GoingBack
from local_account.demo.redrive.picture import LettersPicture, compared
from local_account.demo.redrive.queue_counts import messages_in
from local_account.demo.redrive.shop import Shop
from local_account.demo.stage import ActFailed, Stage
from local_account.demo.story import BadQueue
from local_account.demo.sweep_acts import AN_HOUR, PUT_BACK_MINUTES, put_back, sweep_now

# What was deleted is measured up to three minutes ago.
SOURCE_PUT_BACK_MINUTES = 4


@dataclass(frozen=True)
class LettersGoBack:
    """From the first order to the last letter; `letters` is the dead-letter queue of `source`."""

    source: BadQueue
    letters: BadQueue

    def tell(self, stage: Stage) -> None:
        shop = Shop.open(stage.account)
        beside = open_beside(stage, shop)
        die_and_mend(stage, shop, self.source, self.letters, beside)
        charged = [shop.payments.at_least(1, each) for each in (LETTERS, RECEIPTS)]
        at = self._seen_to_hold(stage)
        self._propose(stage)
        course = self._send_back(stage, shop, at)
        counts = self._count(stage, shop, course)
        self._have_careless_beside(stage, shop, beside)
        again = [shop.payments.at_least(2, each) for each in (LETTERS, RECEIPTS)]
        handled = [len(counts.handled), len(RECEIPTS)]
        rows = (
            ("letters handled", handled),
            ("charged before they died", charged),
            ("charged again", again),
        )
        titles = (f"{self.source.name}, careful", f"{beside.name}, careless")
        stage.console.print(compared(rows, titles))
        stage.letters["charged_again"] = dict(zip(("careful", "careless"), again, strict=True))
        if again != [0, len(RECEIPTS)]:
            raise ActFailed(f"charged again were {again}, expected none and {len(RECEIPTS)}")

    def _seen_to_hold(self, stage: Stage) -> datetime:
        """Verified, and watched from then on; for when the follow-up was fired last."""
        lease = longer_lease(self.source)
        by = lease + CLOUDTRAIL_LAG + A_MINUTE
        at = datetime.now(UTC) + by
        why = (
            f"the longer lease of {lease.total_seconds():.0f} s, "
            f"{CLOUDTRAIL_LAG // A_MINUTE} min for CloudTrail, a minute for the schedule"
        )
        put_forward(stage, by, why)
        stage.follow_up_until([self.source.name], State.VERIFIED, at)
        stage.follow_up_until([self.source.name], State.WATCHING, at + A_MINUTE)
        return at + A_MINUTE

    def _propose(self, stage: Stage) -> None:
        """The sweep finds what waits; what it measures are hours, which are put back."""
        put_back(stage, [self.letters.name], (1, PUT_BACK_MINUTES - 1), AN_HOUR)
        late = (
            "CloudWatch tells what was deleted after some minutes, and so how fast letters may go"
        )
        put_back(stage, [self.source.name], (SOURCE_PUT_BACK_MINUTES,), late)
        sweep_now(stage)
        stage.until_in([self.letters.name], State.PROPOSED)
        lowered = floors.lower(stage.account)
        stage.floors_lowered.extend(lowered)
        stage.say("bounds", "lowered for this story: " + "; ".join(lowered), "yellow")
        stage.say(self.letters.name, "waits for a person, who agrees")
        stage.mendq("approve", stage.case_id(self.letters.name), "--yes", code=DONE)
        stage.until_in([self.letters.name], State.APPLIED)

    def _send_back(self, stage: Stage, shop: Shop, at: datetime) -> Course:
        said = "the follow-up is fired when there is something to do, not once a minute"
        stage.clock_put_forward.append(said)
        stage.say("clock", said, "yellow")
        picture = LettersPicture(self.source.name, self.letters.name, len(LETTERS))
        return GoingBack(stage, shop, self.source, self.letters, picture, at).tell()

    def _count(self, stage: Stage, shop: Shop, course: Course) -> Conserved:
        """Raise ActFailed where a letter is not where it should be."""
        sqs, source = shop.sqs, stage.seen(self.source.name)
        counts = conserved(
            LETTERS,
            shop.careful.noted,
            shop.payments,
            quarantined=order_ids_in(sqs, f"{source.queue_url}-quarantine"),
            dead=order_ids_in(sqs, stage.seen(self.letters.name).queue_url),
        )
        stage.letters.update(counts.document(course))
        if faults := counts.faults():
            raise ActFailed("; ".join(faults))
        stage.say(
            "letters",
            f"{len(counts.letters)} letters: {len(counts.handled)} handled, "
            f"{len(counts.quarantined)} in quarantine, {len(counts.lost)} lost; "
            "each customer is charged once",
            "bold green",
        )
        if (twice := course.moved - len(LETTERS)) > 0:
            said = f"{twice} went back twice: a move task does not know what is back already"
            stage.say("letters", said)
        stage.mendq("quarantine", "peek", self.source.name, "--limit", "2", code=DONE)
        return counts

    def _have_careless_beside(self, stage: Stage, shop: Shop, beside: Beside) -> None:
        """A person mends the lease and sends all back, by hand."""
        stage.say(beside.name, "beside it, by hand: a longer lease, and all its letters go back")
        shop.sqs.set_queue_attributes(
            QueueUrl=beside.queue_url, Attributes={"VisibilityTimeout": "30"}
        )
        stage.mendq("redrive", beside.name, "--all", "--yes", code=DONE)
        urls = (beside.queue_url, beside.dead_url)
        with consuming(careless_of(beside, shop).consume, 2):
            stage.until(
                lambda: not any(messages_in(shop.sqs, each) for each in urls),
                f"{beside.name} to drain",
            )
