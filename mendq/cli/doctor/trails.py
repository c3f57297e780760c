"""The trails of this account and region that are logging, with their selectors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mendq.cli.account import Account
from mendq.cli.doctor.check import Check, Command, Status
from mendq.cli.doctor.visibility import Trail


@dataclass
class Trails:
    """Filled while the checks are made."""

    logging: list[Trail] = field(default_factory=list)

    def look(self, account: Account) -> Iterator[Check]:
        """One check a trail; raises ClientError."""
        client = account.clients.cloudtrail
        described = client.describe_trails(includeShadowTrails=True)["trailList"]
        for each in described:
            arn, name = each["TrailARN"], each["Name"]
            label = f"trail {name}"
            if not client.get_trail_status(Name=arn).get("IsLogging"):
                # A trail is switched on where it was made.
                home = each.get("HomeRegion", account.region)
                start = Command.aws(home, "cloudtrail", "start-logging", "--name", arn)
                yield Check(label, Status.WARN, "it is switched off", start)
                continue
            selectors = client.get_event_selectors(TrailName=arn).get("AdvancedEventSelectors", [])
            trail = Trail(name, tuple(selectors))
            self.logging.append(trail)
            asks = sum(_selects_queues(one) for one in selectors)
            yield Check(label, Status.OK, f"is logging, {asks} selector(s) of SQS data events")
        if not any(_selects_queues(one) for each in self.logging for one in each.selectors):
            says = "no trail that is logging selects SQS data events: no failed call is seen"
            remedy = "set trail.create and trail.queueArnPrefixes, and deploy"
            yield Check("data events", Status.FAIL, says, remedy)


def _selects_queues(selector: object) -> bool:
    return "AWS::SQS::Queue" in str(selector)
