"""One page that answers: is Mendq well, what is broken now, what did it do today."""

from __future__ import annotations

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.alarms import Alarms
from infra.alarms.description import OPEN_CASES, in_region
from infra.alarms.open_cases import ESCALATED, PROPOSED
from infra.alarms.pages import FIXES_SPIKE
from infra.alarms.spike import OVER_CEILING
from infra.alarms.watched import Watched
from infra.dashboard import charts
from infra.lambdas.lambda_function import every_function
from infra.settings.deployment import DeploymentSettings
from mendq.notifications.commands import DOCTOR

# CloudWatch's grid.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html
WIDE = 24
HEADING = 2
A_DAY = Duration.days(1)
CASES = "mendq cases"
# What only an open case or many fixes make ring says nothing of Mendq's own health.
OF_QUEUES = frozenset(each.called() for each in (FIXES_SPIKE, OVER_CEILING, ESCALATED, PROPOSED))


class Dashboard(Construct):
    """A dashboard's name holds in all regions of an account, so it carries the region."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        alarms: Alarms,
        watched: Watched,
        settings: DeploymentSettings,
    ) -> None:
        super().__init__(scope, name)
        about_queues, about_us = alarms.about(OF_QUEUES)
        self._page = cloudwatch.Dashboard(
            self,
            "Page",
            dashboard_name=f"mendq-{Stack.of(self).region}",
            default_interval=A_DAY,
        )
        self._heading("Is the healer well?", DOCTOR, "asks for more.")
        self._page.add_widgets(_status("Alarms about Mendq itself", about_us, WIDE, charts.HEIGHT))
        self._page.add_widgets(
            charts.signs_of_life(settings.timing.probe_minutes),
            charts.intake(watched.intake.queue),
            charts.given_up(watched),
        )
        self._page.add_widgets(
            charts.errors(every_function(Stack.of(self))), charts.not_done(), charts.nightly_runs()
        )
        self._heading("What is broken now?", OPEN_CASES, "names the queues.")
        self._page.add_widgets(
            _status("Alarms about your queues", about_queues, charts.WIDTH, charts.HEIGHT),
            charts.open_now(),
            charts.open_cases(),
        )
        self._heading("What did it do today?", CASES, "names every case, newest first.")
        self._page.add_widgets(charts.counts(), charts.not_closed_yet())
        self._page.add_widgets(
            charts.fixes(settings.limits), charts.fixes_by_symptom(), charts.time_to_heal()
        )

    def _heading(self, question: str, command: str, does: str) -> None:
        here = in_region(command, Stack.of(self).region)
        text = f"## {question}\n`{here}` {does}"
        self._page.add_widgets(cloudwatch.TextWidget(markdown=text, width=WIDE, height=HEADING))


def _status(
    title: str, alarms: list[cloudwatch.IAlarm], width: int, height: int
) -> cloudwatch.AlarmStatusWidget:
    """CloudWatch puts those that ring first."""
    return cloudwatch.AlarmStatusWidget(title=title, alarms=alarms, width=width, height=height)
