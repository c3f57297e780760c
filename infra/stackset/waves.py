"""Where a stack set goes and in what order, as the commands that take it there."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from infra.alarms.alarm import INTAKE
from infra.alarms.health import (
    FOLLOW_UP_ERRORS,
    HEAL_ERRORS,
    LATE,
    OWN_DLQ,
    PROBE_LOST,
    SCAN_MISSING,
    SILENT,
    UNDELIVERED,
)
from infra.settings.deployment import Account, Region
from infra.settings.hook import STACK_SET
from infra.settings.reading import Conflict, entries, object_in, one_of, text, whole
from infra.stackset.one_template import PARAMETERS, REGION
from mendq.model.limits import Range

SCRIPT = Path(__file__).with_name("rollout.sh")
# Whether probes come through, heal works and the scan runs: there in any case, `alarms` or not.
_ALARMS = (PROBE_LOST, HEAL_ERRORS, FOLLOW_UP_ERRORS, UNDELIVERED, SILENT, LATE, SCAN_MISSING)
ALARMS = (*(each.called() for each in _ALARMS), OWN_DLQ.called(INTAKE))
_UNIT = r"r-[0-9a-z]{4,32}|ou-[0-9a-z]{4,32}-[0-9a-z]{8,32}"
Unit = Annotated[str, text("the id of a unit, or of the root", _UNIT, "ou-abcd-11111111")]
Units = Annotated[tuple[Unit, ...], entries("units")]
# The guard knows those that begin so.
_NAME = rf"(?=.{{1,64}}\Z){STACK_SET}(?:-[A-Za-z0-9]+)*"
StackSet = Annotated[str, text(f"a name that begins with {STACK_SET}", _NAME, "mendq-payments")]
Profile = Annotated[str, text("a profile of the AWS CLI", r"(?a:\w[\w.@+-]{0,127})", "canary")]
Canaries = Annotated[Mapping[Account, Profile], Meta(extra={"most": 100})]
Name = Annotated[str, one_of("a parameter of the template", PARAMETERS)]
Value = Annotated[str, text("a text", "(?s:.{0,1000})", '"" or on-call@example.com')]
Parameters = Annotated[Mapping[Name, Value], Meta(extra={"most": 20})]
Url = Annotated[str, text("an https URL", r"https://[!-~]{1,1000}", "https://... to the template")]


@dataclass(frozen=True)
class Waves:
    """`canaries` are accounts, each with the AWS CLI's profile that may look at its alarms.

    `parameters` are the stack set's own, in the place of what the settings say.
    """

    regions: Annotated[tuple[Region, ...], entries("regions")] = ()
    canaries: Canaries = field(default_factory=dict)
    waves: Annotated[tuple[Units, ...], entries("lists of units")] = ()
    stack_set: StackSet = STACK_SET
    call_as: Annotated[str, one_of("who calls", ("DELEGATED_ADMIN", "SELF"))] = "DELEGATED_ADMIN"
    accounts_at_once: Annotated[int, Range(1, 500)] = 5
    soak_minutes: Annotated[int, Range(1, 10_080)] = 180
    parameters: Parameters = field(default_factory=dict)
    template_url: Url | None = None

    def conflicts(self) -> Iterator[Conflict]:
        """What has to be said, and what no single field can show."""
        for name in ("regions", "canaries", "waves"):
            if not getattr(self, name):
                yield {name}, name, "names none", "say one at least: docs/stacksets.md shows how"
        if not all(self.waves):
            yield {"waves"}, "waves", "one of them is empty", "leave it out"
        named = Counter(unit for units in self.waves for unit in units)
        # The canaries are asked for among all of them at once.
        # https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_CreateStackInstances.html
        if len(named) > 50:
            yield {"waves"}, "waves", f"{len(named)} units, over 50", "name one that holds some"
        for unit, times in named.items():
            if times > 1:
                yield {"waves"}, "waves", f"{unit} is in {times} of them", "leave it in one"


def waves_in(path: Path) -> Waves:
    """Raises SettingsRefused with every mistake."""
    return whole(Waves, object_in(path, "WAVES"), of="WAVES ")


def rollout(waves: Waves, bucket: str, key: str, parameters: Mapping[str, str]) -> str:
    """A script for the AWS CLI; `parameters` are the template's."""
    region, values = waves.regions[0], {**parameters, **waves.parameters}
    url = f"https://{bucket.replace(REGION, region)}.s3.{region}.amazonaws.com/{key}"
    pairs = [{"ParameterKey": name, "ParameterValue": value} for name, value in values.items()]
    every = tuple(unit for units in waves.waves for unit in units)
    known = {
        "ACCOUNTS": " ".join(waves.canaries),
        "ALARMS": shlex.quote(" ".join(ALARMS)),
        "CALL_AS": waves.call_as,
        "CANARIES": " ".join(waves.canaries.values()),
        # What is gone on with has to be what the canaries got.
        "KEY": sha256(f"{waves.template_url or url} {pairs}".encode()).hexdigest()[:16],
        "PARAMETERS": _json(pairs),
        "LAST": str(len(waves.waves) + 1),
        "REGIONS": " ".join(waves.regions),
        "SOAK": str(waves.soak_minutes),
        "STACK_SET": waves.stack_set,
        "URL": shlex.quote(waves.template_url or url),
        "WAVES": "\n".join(_wave(waves, *each) for each in enumerate((every, *waves.waves))),
        "WHOSE": "\n".join(map("whose {} {}".format, waves.canaries, waves.canaries.values())),
    }
    return re.sub("@([A-Z_]+)@", lambda found: known[found[1]], SCRIPT.read_text())


def _wave(waves: Waves, number: int, units: tuple[str, ...]) -> str:
    """One region after the other, and no further once a stack fails; the canaries are the first."""
    kind = "DIFFERENCE" if number else "INTERSECTION"
    accounts = [*waves.canaries]
    targets = {"OrganizationalUnitIds": units, "Accounts": accounts, "AccountFilterType": kind}
    at_once = waves.accounts_at_once if number else 1
    order = {"RegionConcurrencyType": "SEQUENTIAL", "RegionOrder": waves.regions}
    # The strict mode would let one more at once than may fail.
    bounds = {"MaxConcurrentCount": at_once, "ConcurrencyMode": "SOFT_FAILURE_TOLERANCE"}
    preferences = {**order, "FailureToleranceCount": 0, **bounds}
    return f"wave {number} {_json(targets)} {_json(preferences)}"


def _json(value: Any) -> str:
    return shlex.quote(json.dumps(value))
