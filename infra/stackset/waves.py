"""Fill in `rollout.sh`, which deploys a stack set wave by wave and halts if a canary's alarm rings.

A wave is one operation of StackSets. Its operation preferences set the order of the regions, how
many accounts are deployed at once, and how many failures are tolerated. They cannot set an order of
accounts or units, and StackSets watches no alarms. That is why there are waves, and why
`rollout.sh` checks alarms between them.

https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_StackSetOperationPreferences.html
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
from infra.settings.reading import Conflict, entries, load_object, one_of, read_settings, text
from infra.stackset.one_template import PARAMETERS, REGION
from mendq.model.limits import Range

SCRIPT = Path(__file__).with_name("rollout.sh")
# The alarms that are checked. They exist with every value of the setting `alarms`.
ALARMS = (
    PROBE_LOST.alarm_name(),
    HEAL_ERRORS.alarm_name(),
    FOLLOW_UP_ERRORS.alarm_name(),
    UNDELIVERED.alarm_name(),
    SILENT.alarm_name(),
    LATE.alarm_name(),
    SCAN_MISSING.alarm_name(),
    OWN_DLQ.alarm_name(INTAKE),
)
# The most units that one operation takes. The canaries' wave names the units of all waves.
# https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_CreateStackInstances.html
MOST_UNITS = 50
_UNIT = r"r-[0-9a-z]{4,32}|ou-[0-9a-z]{4,32}-[0-9a-z]{8,32}"
Unit = Annotated[str, text("the id of a unit, or of the root", _UNIT, "ou-abcd-11111111")]
Units = Annotated[tuple[Unit, ...], entries("units")]
# The guard protects only stacks whose names begin with the name of the stack set.
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
    """The content of a WAVES file: where a stack set is deployed, and in which order.

    Attributes:
        regions: the stacks' regions, in the order in which each wave deploys them.
        canaries: accounts that are deployed first, each with a profile of the AWS CLI that may read
            their alarms.
        waves: organizational units, one list for each wave.
        stack_set: name of the stack set.
        call_as: the account that calls StackSets: the delegated administrator or the management
            account (`SELF`).
        accounts_at_once: the most accounts of a region that StackSets deploys to at the same time.
        soak_minutes: how long the canaries' alarms are watched after each wave.
        parameters: values of the template's parameters; they replace the defaults, which come from
            the settings.
        template_url: URL of an older template to go back to; None: the template that is built now.
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
        """Yield a mistake for each required field that is empty, and for units that conflict."""
        required = {"regions": self.regions, "canaries": self.canaries, "waves": self.waves}
        for name, entries_given in required.items():
            if not entries_given:
                remedy = "say one at least: docs/stacksets.md shows how"
                yield Conflict({name}, name, "names none", remedy)
        if not all(self.waves):
            yield Conflict({"waves"}, "waves", "one of them is empty", "leave it out")
        named = Counter(unit for units in self.waves for unit in units)
        if len(named) > MOST_UNITS:
            fault = f"{len(named)} units, over {MOST_UNITS}"
            yield Conflict({"waves"}, "waves", fault, "name one that holds some")
        for unit, times in named.items():
            if times > 1:
                fault = f"{unit} is in {times} of them"
                yield Conflict({"waves"}, "waves", fault, "leave it in one")

    @property
    def operation_preferences(self) -> dict[str, Any]:
        """The operation preferences of every wave.

        Without ConcurrencyMode, StackSets would deploy to only one account at once: the number of
        tolerated failures, which is 0, plus one.
        """
        return {
            "RegionConcurrencyType": "SEQUENTIAL",
            "RegionOrder": list(self.regions),
            "MaxConcurrentCount": self.accounts_at_once,
            "FailureToleranceCount": 0,
            "ConcurrencyMode": "SOFT_FAILURE_TOLERANCE",
        }


def load_waves(path: Path) -> Waves:
    """Load a WAVES file. Raise SettingsRefused with every mistake."""
    return read_settings(Waves, load_object(path, "WAVES"), path_prefix="WAVES ")


def fill_rollout_script(waves: Waves, bucket: str, key: str, parameters: Mapping[str, str]) -> str:
    """Return the text of rollout.sh, a script for the AWS CLI.

    Args:
        waves: where the stack set is deployed.
        bucket: name of the buckets, with `${AWS::Region}` in place of the region.
        key: key of the template in the buckets.
        parameters: the template's parameters with their defaults.
    """
    region = waves.regions[0]
    own_url = f"https://{bucket.replace(REGION, region)}.s3.{region}.amazonaws.com/{key}"
    url = waves.template_url or own_url
    values = {**parameters, **waves.parameters}
    pairs = [{"ParameterKey": name, "ParameterValue": value} for name, value in values.items()]
    profiles = [f"whose {account} {profile}" for account, profile in waves.canaries.items()]
    filled_in = {
        "ACCOUNTS": " ".join(waves.canaries),
        "ALARMS": shlex.quote(" ".join(ALARMS)),
        "CALL_AS": waves.call_as,
        "CANARIES": " ".join(waves.canaries.values()),
        # A digest of template and parameters, so that later waves deploy what the canaries got.
        "KEY": sha256(f"{url} {pairs}".encode()).hexdigest()[:16],
        "LAST": str(len(waves.waves) + 1),
        "PARAMETERS": _json(pairs),
        "PREFERENCES": _json(waves.operation_preferences),
        "REGIONS": " ".join(waves.regions),
        "SOAK": str(waves.soak_minutes),
        "STACK_SET": waves.stack_set,
        "URL": shlex.quote(url),
        "WAVES": "\n".join(_wave_lines(waves)),
        "WHOSE": "\n".join(profiles),
    }
    return re.sub("@([A-Z_]+)@", lambda match: filled_in[match[1]], SCRIPT.read_text())


def _wave_lines(waves: Waves) -> Iterator[str]:
    """Yield one line of the script for each wave. Wave 0 has the canaries, no later wave does."""
    every_unit = [unit for units in waves.waves for unit in units]
    yield f"wave 0 {_json(_targets(every_unit, waves, 'INTERSECTION'))}"
    for number, units in enumerate(waves.waves, start=1):
        yield f"wave {number} {_json(_targets(units, waves, 'DIFFERENCE'))}"


def _targets(units: Sequence[str], waves: Waves, kind: str) -> dict[str, Any]:
    """Return the deployment targets of a wave, as StackSets expects them.

    With kind INTERSECTION they are the canaries in `units`, with DIFFERENCE all other accounts.
    """
    return {
        "OrganizationalUnitIds": list(units),
        "Accounts": list(waves.canaries),
        "AccountFilterType": kind,
    }


def _json(value: Any) -> str:
    """Return JSON, quoted as one word for a shell."""
    return shlex.quote(json.dumps(value))
