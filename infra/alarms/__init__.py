"""The alarms on Mendq itself, and which of them reach people.

Mendq notifies people in two ways. A notification about a case is sent once, by the Lambda that
moves the case. An alarm, made here, is about a state: CloudWatch reports when the state begins and
when it ends, and does so even if every Lambda of Mendq is broken.

Which alarms exist (`health.py` and `fixes.py` hold one description for each):

| part | watches | people hear |
|---|---|---|
| Liveness | do failed calls get from CloudTrail through heal; does follow_up run | urgent |
| Failing | queues and cases that heal or follow_up could not handle | urgent |
| Scanning | the hourly scan fails or does not run | info |
| OpenCases | a case was escalated; cases that wait for a person | urgent; info while they wait |
| Parked | failed calls that did not reach the intake queue | urgent |
| Parked | events in a DLQ of Mendq's own; Lambdas that write and fail | info |
| NightlyRuns | nightly and weekly runs, the report, the size of the trail | info |
| Spike | more fixes than usual; more fixes than allowed at all | urgent |

Rules, each with its reason:

1. An alarm is urgent if failed calls may come to nothing, if open cases may not be followed up, if
   Mendq fixes too much, or if a case was escalated. Everything else is info, because failed calls
   are still handled meanwhile. Alarms go to Mendq's two topics, one for each severity, and never to
   a team's topic: they are about Mendq, not about one team's queue.

2. An alarm with a cause of its own reaches people by itself. There is one alarm for each DLQ and
   for each Lambda besides heal that writes queues, so that a message that waits in one DLQ for days
   cannot hide the next fault. Errors of heal and follow_up that their code caught are counted by
   Mendq's own metrics, because AWS counts no error then.

3. Alarms that one cause makes ring together notify nobody by themselves. A composite alarm
   notifies once for all of them: `not_healing` for intake_late and heal_failing, `nightly_failing`
   for the three on nightly runs.

4. What missing data means depends on the metric.
   - A counter that is sent only if something happens: missing data is fine (FINE).
   - A sign of life (the heartbeat, probes, scans, nightly runs): missing data is the fault itself
     (A_FAULT).
   - A gauge, or the result of the newest run: the alarm keeps its state (AS_BEFORE), so that
     silence ends no alarm. The heartbeat alarm reports the silence.

5. Whoever may put metrics can forge Mendq's own. So a dead follow_up or scan shows in AWS's own
   counts: the heartbeat is a minute in which AWS counted a run of follow_up without an error and
   follow_up also sent its metric; `scan_missing` rings if AWS counted no run of the scan without
   an error. A probe, which is a call that must fail, tests the whole way from CloudTrail to heal.

6. What is retried by itself must fail repeatedly: heal and follow_up in several periods of five
   minutes, scans in three of four hours. What a person must settle rings at once: an event in a
   DLQ, an escalated case. The alarm `case_escalated` ends within minutes, so that the next
   escalation rings again; `escalated_cases_open` lasts until the last case is settled.

7. Many fixes are measured against what is usual (an anomaly model), because a large account fixes
   in a normal hour what a small one fixes in a year. The model alone would page for three fixes
   after a quiet week, or for a burst that is over. So `fixes_spike` needs three alarms at once:
   more than usual, not few, and still coming.

8. The model learns a slow rise as normal. So a fixed ceiling pages as well, at three times the
   allowed writes per minute within 15 minutes. Nothing holds the ceiling's page back.

9. One alarm holds back another's page: while `fixes_held_back` rings, CloudWatch does not send the
   page of `fixes_spike`, because it is not known yet whether the newest of the many fixes helps.
   `fixes_held_back` notifies nobody. It rings for at most 25 of any 60 minutes, so that whoever
   forges its metric cannot silence the page for long.

10. With the setting `alarms: essential` only the alarms on harm to users and on a Mendq that does
    not heal are made, to cost less. There is no composite then: an alarm that a composite would
    join reaches people itself, with the composite's severity. Only two DLQs are watched then, the
    rule's and the intake's, because these keep failed calls.

The alarms on nightly runs exist only if the nightly job is enabled, the one on undelivered reports
only if the report is mailed. Do not rename an alarm or a construct: operators and the rollout of a
stack set look alarms up by name, and a renamed construct is another resource.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.alarms import fixes, health
from infra.alarms.alarm import AlarmDescription, composite
from infra.alarms.health import WatchedResources, watches
from infra.settings.deployment import DeploymentSettings
from infra.topics import Topics
from mendq.model.settings import FULL

_DESCRIPTIONS = tuple(
    value
    for module in (fixes, health)
    for value in vars(module).values()
    if isinstance(value, AlarmDescription)
)
# Alarms that notify people directly, and alarms that only composites use.
NOTIFIED = tuple(description for description in _DESCRIPTIONS if description.severity)
WATCHED = tuple(description for description in _DESCRIPTIONS if not description.severity)
# By part of the stack: the composite alarm that notifies people for the part's other alarms.
JOINED: Mapping[str, AlarmDescription] = {
    "Liveness": health.NOT_HEALING,
    "NightlyRuns": health.NIGHTLY_FAILING,
}


class Alarms(Construct):
    """Every alarm of the stack, each connected to the topic that it notifies."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        watched: WatchedResources,
        topics: Topics,
        settings: DeploymentSettings,
    ) -> None:
        super().__init__(scope, name)
        self.node.set_context("docsUrl", settings.docs_url or "")
        self._topics = topics
        self._notifying: list[tuple[AlarmDescription, cloudwatch.IAlarm]] = []
        parts = self._make_parts()
        if settings.alarms == FULL:
            self._add_all(watched, settings, parts)
        else:
            self._add_essential(watched, settings, parts)

    def about(
        self, names: Collection[str]
    ) -> tuple[list[cloudwatch.IAlarm], list[cloudwatch.IAlarm]]:
        """Split the alarms that reach people: those that `names` has, and all others."""
        named: list[cloudwatch.IAlarm] = []
        others: list[cloudwatch.IAlarm] = []
        for description, alarm in self._notifying:
            if description.alarm_name() in names:
                named.append(alarm)
            else:
                others.append(alarm)
        return named, others

    def _make_parts(self) -> Mapping[str, Construct]:
        """Make the construct of each part, in the order in which the descriptions name them."""
        names = dict.fromkeys(description.part for description in _DESCRIPTIONS)
        return {name: Construct(self, name) for name in names if name}

    def _add_essential(
        self,
        watched: WatchedResources,
        settings: DeploymentSettings,
        parts: Mapping[str, Construct],
    ) -> None:
        """Add the essential alarms. Each of them reaches people."""
        for watch in watches(watched, settings):
            if watch.is_essential:
                description = watch.description
                self._notify(description, watch.alarm(parts[description.part]))

    def _add_all(
        self,
        watched: WatchedResources,
        settings: DeploymentSettings,
        parts: Mapping[str, Construct],
    ) -> None:
        """Add every alarm, and the composites that notify for those that do not themselves."""
        joined = defaultdict[str, list[cloudwatch.IAlarm]](list)
        for watch in watches(watched, settings):
            description = watch.description
            alarm = watch.alarm(parts[description.part])
            if description.severity:
                self._notify(description, alarm)
            else:
                joined[description.part].append(alarm)
        for part, alarms in joined.items():
            any_of_them = cloudwatch.AlarmRule.any_of(*alarms)
            self._notify(JOINED[part], composite(self, JOINED[part], any_of_them))
        spike = fixes.Spike(parts[fixes.PART])
        held_back = composite(self, fixes.HELD_BACK, spike.holds_back)
        page = composite(self, fixes.FIXES_SPIKE, spike.rule, held_back, fixes.SETTLING)
        self._notify(fixes.FIXES_SPIKE, page)

    def _notify(self, description: AlarmDescription, alarm: cloudwatch.AlarmBase) -> None:
        """Notify people when the alarm begins and ends, as urgently as it or its composite says."""
        severity = description.severity or JOINED[description.part].severity
        assert severity  # noqa: S101 - a composite has a severity
        self._topics.tell_of(alarm, severity)
        self._notifying.append((description, alarm))
