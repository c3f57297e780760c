"""Fixes minute by minute, and what of them is paged: the alarms on fixes alone, without the others.

Hundreds of bursts are looked at. What is sent of them may reach the alarms late.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mendq.model.case import State
from mendq.model.limits import Limits
from mendq.model.names import OwnMetric, fixes_being_verified
from tests.infra.alarms.evaluator import Data, Evaluator, Notice
from tests.infra.alarms.evaluator import State as AlarmState
from tests.infra.alarms.simulated import HOUR, at, healed, own
from tests.infra.synthesized import template_of

# Where fixes are rare, the band lies below one.
NOTHING_IS_USUAL = 0.5
# What is over by then is paged no more.
AFTERWARDS = 80


@dataclass(frozen=True)
class Burst:
    """Fixes by their minutes, from 0 on, and what came before them.

    `unsaid`: Mendq itself waits for none of them, as where each soon fails again. In the minutes
    `forged` somebody else says that one is being verified.
    """

    fixes: Sequence[int]
    earlier: Sequence[int] = ()
    forged: Collection[int] = ()
    unsaid: bool = False
    fixes_late: int = 0
    verified_late: int = 0

    def notified(self) -> Paged:
        minutes = range(-HOUR, self.fixes[-1] + AFTERWARDS)
        evaluator = _of_fixes(Evaluator.of(template_of("named")))
        evaluator.run(_data(self._sent(minutes)), minutes, lambda _minute: NOTHING_IS_USUAL)
        many = [min(evaluator.rang.get(each, [minutes.stop])) for each in _TOGETHER]
        spike = [each for each in evaluator.notices if each.alarm == "fixes-spike"]
        return Paged(
            max(many),
            [each.minute for each in spike if each.state is AlarmState.ALARM],
            [each.minute for each in spike if each.state is AlarmState.OK],
            evaluator.notices,
        )

    def _sent(self, minutes: range) -> Mapping[OwnMetric, Mapping[int, float]]:
        made = Counter(self.fixes)
        fixes = {each + self.fixes_late: float(made[each]) for each in minutes}
        verified = {each + self.verified_late: self._waits_for(each) for each in minutes}
        return {
            OwnMetric.AUTO_FIXES: fixes,
            OwnMetric.FIXES_BEING_VERIFIED: {**verified, **dict.fromkeys(self.forged, 1.0)},
        }

    def _waits_for(self, minute: int) -> float:
        if self.unsaid:
            return 0.0
        opened = [
            (_state(each, minute), at(each))
            for each in (*self.earlier, *self.fixes)
            if each <= minute
        ]
        return float(fixes_being_verified(opened, at(minute), Limits()))


_TOGETHER = ("fixes-unusual", "fixes-many")


@dataclass(frozen=True)
class Paged:
    """When the page of many fixes began and ended, and all that was told.

    `rings_at` is when many and unusual ring first.
    """

    rings_at: int
    began: Sequence[int]
    ended: Sequence[int]
    notices: Sequence[Notice]


def _state(fix: int, minute: int) -> State:
    """As `healed` has it."""
    states = healed(fix).states
    return states[max(each for each in states if each <= minute)]


def _of_fixes(evaluator: Evaluator) -> Evaluator:
    for alarms in (evaluator.metric_alarms, evaluator.composites):
        for name in [each for each in alarms if not evaluator.names[each].startswith("fix")]:
            alarms.pop(name)
    return evaluator


def _data(sent: Mapping[OwnMetric, Mapping[int, float]]) -> Data:
    data = Data()
    for metric, values in sent.items():
        for minute in sorted(values):
            data.put(own(metric.value), minute, values[minute])
    return data
