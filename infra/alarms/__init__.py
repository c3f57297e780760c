"""The alarms on Mendq itself, and which of them notify people.

Mendq notifies people in two ways. A notification about a case is sent once, by the Lambda that
moves the case. An alarm, made here, is about a state: CloudWatch reports when the state begins and
when it ends, and does so even if every Lambda of Mendq is broken.

The alarms (`health.py` and `fixes.py` have one description for each):

| part | watches | notification |
|---|---|---|
| Liveness | failed calls go from CloudTrail through heal; follow_up runs | urgent |
| Failing | queues and cases that heal or follow_up could not handle | urgent |
| Scanning | the hourly scan fails or does not run | info |
| OpenCases | a case was escalated; cases that wait for a person | urgent; info while they wait |
| Parked | failed calls that did not reach the intake queue | urgent |
| Parked | events in a DLQ of Mendq's own; Lambdas that write and fail | info |
| NightlyRuns | nightly and weekly runs, the report, the size of the trail | info |
| Spike | more fixes than usual; as many fixes as a fixed ceiling | urgent |

Rules, each with its reason:

1. An alarm is urgent if Mendq may have stopped handling failed calls, if open cases may not be
   followed up, if Mendq fixes too much, or if a case was escalated. Everything else is info,
   because failed calls are still handled meanwhile. Alarms go to Mendq's two topics, one for each
   severity, and never to a team's topic: they are about Mendq, not about one team's queue.

2. An alarm with a cause of its own notifies people directly. There is one alarm for each DLQ and
   for each Lambda except heal that owns a kind of write, so that a message that waits in one DLQ
   for days cannot hide the next fault. Errors of heal and follow_up that their code caught are
   counted by Mendq's own metrics, because AWS counts no error then.

3. Alarms that ring together because they have one cause do not notify people directly. A composite
   alarm notifies once for all of them: `not_healing` for intake_late and heal_failing,
   `nightly_failing` for the three on nightly runs.

4. What missing data means depends on the metric.
   - A counter that is sent only if something happens: missing data is fine (MISSING_DATA_IS_FINE).
   - A sign of life (the heartbeat, probes, scans, nightly runs): missing data is the fault itself
     (MISSING_DATA_IS_A_FAULT).
   - A gauge, or the result of the newest run: the alarm keeps its state (MISSING_DATA_KEEPS_STATE),
     so that an alarm does not end because the metric is missing. The heartbeat alarm reports
     missing metrics.

5. Every principal that may put metrics can forge Mendq's own. So a dead follow_up or scan shows in
   AWS's own counts: the heartbeat is a minute in which AWS counted a run of follow_up without an
   error and follow_up also sent its metric; `scan_missing` rings if AWS counted no run of the scan
   without an error. A probe, which is a call that must fail, tests the whole way from CloudTrail to
   heal.

6. Work that Mendq or AWS retries must fail repeatedly: heal and follow_up in several periods of
   five minutes, scans in three of four hours. Problems that only a person can solve ring at once:
   an event in a DLQ, an escalated case. The alarm `case_escalated` ends within minutes, so that the
   next escalation rings again; `escalated_cases_open` lasts until the last case is settled.

7. The number of fixes is compared with a model of the usual number, because a large account has
   as many fixes in a normal hour as a small one in a year. The model alone would page for three
   fixes after a quiet week, or for a peak that is over. So `fixes_spike` rings only if three alarms
   ring at once: more fixes than usual, not few, and still coming.

8. The model learns a slow rise as normal. So `fixes_over_ceiling` pages as well, at a fixed number
   of fixes: three times the allowed writes per minute, within 15 minutes. No alarm suppresses it.

9. One alarm suppresses another: while `fixes_held_back` rings, CloudWatch does not send the page of
   `fixes_spike`, because it is not known yet if the newest of the many fixes helps.
   `fixes_held_back` notifies nobody. It rings for at most 25 of any 60 minutes, so that a principal
   that forges its metric cannot suppress the page for long.

10. The setting `alarms: essential` saves cost. It keeps only the alarms on harm to users and on a
    Mendq that does not heal, and makes no composites: an alarm that belongs to a composite
    notifies people directly, with the composite's severity. Only two DLQs are watched, the rule's
    and the intake's, because these keep failed calls.

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
from infra.alarms.alarm import AlarmDescription, make_composite
from infra.alarms.health import WatchedResources, list_metric_alarms
from infra.settings.deployment import DeploymentSettings
from infra.topics import Topics
from mendq.model.settings import FULL_ALARMS

_ALL_ALARM_DESCRIPTIONS = (*fixes.DESCRIPTIONS, *health.DESCRIPTIONS)
# Alarms that notify people directly.
NOTIFYING_ALARMS = tuple(
    description for description in _ALL_ALARM_DESCRIPTIONS if description.severity
)
# Alarms that only composite alarms use.
ALARMS_IN_COMPOSITES = tuple(
    description for description in _ALL_ALARM_DESCRIPTIONS if not description.severity
)
# The composite alarm that notifies people for the other alarms of a part, by the part's name.
COMPOSITE_ALARM_BY_STACK_PART: Mapping[str, AlarmDescription] = {
    "Liveness": health.NOT_HEALING_ALARM,
    "NightlyRuns": health.NIGHTLY_FAILING_ALARM,
}


class Alarms(Construct):
    """Makes the stack's alarms, and connects those that notify people to their topics."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        watched_resources: WatchedResources,
        topics: Topics,
        settings: DeploymentSettings,
    ) -> None:
        super().__init__(scope, name)
        self.node.set_context("docsUrl", settings.docs_url or "")
        self._topics = topics
        self._notifying_alarms: list[tuple[AlarmDescription, cloudwatch.IAlarm]] = []
        construct_by_part = self._make_part_constructs()
        if settings.alarms == FULL_ALARMS:
            self._add_all_alarms(watched_resources, settings, construct_by_part)
        else:
            self._add_essential_alarms(watched_resources, settings, construct_by_part)

    def split_by_name(
        self, alarm_names: Collection[str]
    ) -> tuple[list[cloudwatch.IAlarm], list[cloudwatch.IAlarm]]:
        """Divide the alarms that notify people into two lists.

        The first list has the alarms whose names are in `alarm_names`, the second all others.
        """
        named_alarms: list[cloudwatch.IAlarm] = []
        other_alarms: list[cloudwatch.IAlarm] = []
        for description, alarm in self._notifying_alarms:
            if description.alarm_name() in alarm_names:
                named_alarms.append(alarm)
            else:
                other_alarms.append(alarm)
        return named_alarms, other_alarms

    def _make_part_constructs(self) -> Mapping[str, Construct]:
        """Make one construct for each part of the alarms. Return the constructs by part name.

        They are made in the order in which the descriptions first name the parts.
        """
        part_names = dict.fromkeys(description.part for description in _ALL_ALARM_DESCRIPTIONS)
        return {name: Construct(self, name) for name in part_names if name}

    def _add_essential_alarms(
        self,
        watched_resources: WatchedResources,
        settings: DeploymentSettings,
        construct_by_part: Mapping[str, Construct],
    ) -> None:
        """Add the alarms that `alarms: essential` keeps. Each of them notifies people directly."""
        for metric_alarm in list_metric_alarms(watched_resources, settings):
            if metric_alarm.is_essential:
                description = metric_alarm.description
                self._connect_to_topic(
                    description, metric_alarm.make_alarm(construct_by_part[description.part])
                )

    def _add_all_alarms(
        self,
        watched_resources: WatchedResources,
        settings: DeploymentSettings,
        construct_by_part: Mapping[str, Construct],
    ) -> None:
        """Add every alarm, and the composites that notify people for alarms without a severity."""
        alarms_by_part = defaultdict[str, list[cloudwatch.IAlarm]](list)
        for metric_alarm in list_metric_alarms(watched_resources, settings):
            description = metric_alarm.description
            alarm = metric_alarm.make_alarm(construct_by_part[description.part])
            if description.severity:
                self._connect_to_topic(description, alarm)
            else:
                alarms_by_part[description.part].append(alarm)
        for part, alarms in alarms_by_part.items():
            any_alarm_rings_rule = cloudwatch.AlarmRule.any_of(*alarms)
            self._connect_to_topic(
                COMPOSITE_ALARM_BY_STACK_PART[part],
                make_composite(self, COMPOSITE_ALARM_BY_STACK_PART[part], any_alarm_rings_rule),
            )
        spike_rules = fixes.SpikeRules(construct_by_part[fixes.FIXES_SPIKE_STACK_PART])
        suppressor = make_composite(self, fixes.FIXES_HELD_BACK_ALARM, spike_rules.suppression_rule)
        spike_alarm = make_composite(
            self,
            fixes.FIXES_SPIKE_ALARM,
            spike_rules.spike_rule,
            suppressor,
            fixes.SUPPRESSOR_GRACE_PERIOD,
        )
        self._connect_to_topic(fixes.FIXES_SPIKE_ALARM, spike_alarm)

    def _connect_to_topic(self, description: AlarmDescription, alarm: cloudwatch.AlarmBase) -> None:
        """Let an alarm notify people when it begins and when it ends.

        An alarm without a severity uses the severity of its part's composite.
        """
        severity = description.severity or COMPOSITE_ALARM_BY_STACK_PART[description.part].severity
        assert severity  # noqa: S101 - a composite has a severity
        self._topics.connect_alarm(alarm, severity)
        self._notifying_alarms.append((description, alarm))
