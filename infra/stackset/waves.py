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

from infra.alarms.alarm import INTAKE_ALARM_SUFFIX
from infra.alarms.health import (
    FAILED_CALLS_UNDELIVERED_ALARM,
    FOLLOW_UP_ERRORS_ALARM,
    HEAL_ERRORS_ALARM,
    HEARTBEAT_MISSING_ALARM,
    INTAKE_LATE_ALARM,
    OWN_DLQ_ALARM,
    PROBE_LOST_ALARM,
    SCAN_MISSING_ALARM,
)
from infra.settings.deployment import Account, Region
from infra.settings.hook import STACK_SET_NAME
from infra.settings.reading import (
    ComparedSection,
    Conflict,
    load_object,
    make_list_bounds,
    make_name_bounds,
    make_text_bounds,
    read_settings,
)
from infra.stackset.one_template import PARAMETER_NAMES, REGION_PLACEHOLDER
from mendq.model.limits import Range
from mendq.model.partitions import dns_suffix_of

ROLLOUT_SCRIPT = Path(__file__).with_name("rollout.sh")
# The alarms that are checked. They exist with every value of the setting `alarms`.
CHECKED_ALARM_NAMES = (
    PROBE_LOST_ALARM.alarm_name(),
    HEAL_ERRORS_ALARM.alarm_name(),
    FOLLOW_UP_ERRORS_ALARM.alarm_name(),
    FAILED_CALLS_UNDELIVERED_ALARM.alarm_name(),
    HEARTBEAT_MISSING_ALARM.alarm_name(),
    INTAKE_LATE_ALARM.alarm_name(),
    SCAN_MISSING_ALARM.alarm_name(),
    OWN_DLQ_ALARM.alarm_name(INTAKE_ALARM_SUFFIX),
)
# The most units that one operation takes. The canaries' wave names the units of all waves.
# https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_CreateStackInstances.html
MAXIMUM_ORGANIZATIONAL_UNITS = 50
_UNIT_PATTERN = r"r-[0-9a-z]{4,32}|ou-[0-9a-z]{4,32}-[0-9a-z]{8,32}"
UnitId = Annotated[
    str, make_text_bounds("the id of a unit, or of the root", _UNIT_PATTERN, "ou-abcd-11111111")
]
UnitIds = Annotated[tuple[UnitId, ...], make_list_bounds("units")]
# The guard protects only stacks whose names begin with the name of the stack set.
_STACK_SET_NAME_PATTERN = rf"(?=.{{1,64}}\Z){STACK_SET_NAME}(?:-[A-Za-z0-9]+)*"
StackSetName = Annotated[
    str,
    make_text_bounds(
        f"a name that begins with {STACK_SET_NAME}", _STACK_SET_NAME_PATTERN, "mendq-payments"
    ),
]
ProfileName = Annotated[
    str, make_text_bounds("a profile of the AWS CLI", r"(?a:\w[\w.@+-]{0,127})", "canary")
]
Canaries = Annotated[Mapping[Account, ProfileName], Meta(extra={"most": 100})]
ParameterName = Annotated[str, make_name_bounds("a parameter of the template", PARAMETER_NAMES)]
ParameterValue = Annotated[
    str, make_text_bounds("a text", "(?s:.{0,1000})", '"" or on-call@example.com')
]
ParameterValues = Annotated[Mapping[ParameterName, ParameterValue], Meta(extra={"most": 20})]
TemplateUrl = Annotated[
    str, make_text_bounds("an https URL", r"https://[!-~]{1,1000}", "https://... to the template")
]


@dataclass(frozen=True)
class Waves(ComparedSection):
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

    regions: Annotated[tuple[Region, ...], make_list_bounds("regions")] = ()
    canaries: Canaries = field(default_factory=dict)
    waves: Annotated[tuple[UnitIds, ...], make_list_bounds("lists of units")] = ()
    stack_set: StackSetName = STACK_SET_NAME
    call_as: Annotated[str, make_name_bounds("who calls", ("DELEGATED_ADMIN", "SELF"))] = (
        "DELEGATED_ADMIN"
    )
    accounts_at_once: Annotated[int, Range(1, 500)] = 5
    soak_minutes: Annotated[int, Range(1, 10_080)] = 180
    parameters: ParameterValues = field(default_factory=dict)
    template_url: TemplateUrl | None = None

    def list_conflicts(self) -> Iterator[Conflict]:
        """Yield the mistakes in what a WAVES file names.

        These are a required field that is empty, an empty wave, too many units, and a unit that is
        in several waves.
        """
        value_by_required_field = {
            "regions": self.regions,
            "canaries": self.canaries,
            "waves": self.waves,
        }
        for field_name, field_value in value_by_required_field.items():
            if not field_value:
                remedy = "say one at least: docs/stacksets.md shows how"
                yield Conflict({field_name}, field_name, "names none", remedy)
        if not all(self.waves):
            yield Conflict({"waves"}, "waves", "one of them is empty", "leave it out")
        wave_count_by_unit = Counter(unit for units in self.waves for unit in units)
        if len(wave_count_by_unit) > MAXIMUM_ORGANIZATIONAL_UNITS:
            fault = f"{len(wave_count_by_unit)} units, over {MAXIMUM_ORGANIZATIONAL_UNITS}"
            yield Conflict({"waves"}, "waves", fault, "name one that holds some")
        for unit, wave_count in wave_count_by_unit.items():
            if wave_count > 1:
                fault = f"{unit} is in {wave_count} of them"
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


def fill_rollout_script(
    waves: Waves,
    bucket_name_pattern: str,
    template_key: str,
    default_by_parameter: Mapping[str, str],
) -> str:
    """Return the text of rollout.sh, a script for the AWS CLI.

    Args:
        waves: where the stack set is deployed.
        bucket_name_pattern: name of the buckets, with `${AWS::Region}` in place of the region.
        template_key: key of the template in the buckets.
        default_by_parameter: the template's parameters with their defaults.
    """
    first_region = waves.regions[0]
    bucket_name = bucket_name_pattern.replace(REGION_PLACEHOLDER, first_region)
    built_template_url = (
        f"https://{bucket_name}.s3.{first_region}.{dns_suffix_of(first_region)}/{template_key}"
    )
    template_url = waves.template_url or built_template_url
    value_by_parameter = {**default_by_parameter, **waves.parameters}
    stack_set_parameters = [
        {"ParameterKey": name, "ParameterValue": value}
        for name, value in value_by_parameter.items()
    ]
    profile_lines = [f"whose {account} {profile}" for account, profile in waves.canaries.items()]
    value_by_placeholder = {
        "ACCOUNTS": " ".join(waves.canaries),
        "ALARMS": shlex.quote(" ".join(CHECKED_ALARM_NAMES)),
        "CALL_AS": waves.call_as,
        "CANARIES": " ".join(waves.canaries.values()),
        # A digest of template and parameters, so that later waves deploy what the canaries got.
        "KEY": sha256(f"{template_url} {stack_set_parameters}".encode()).hexdigest()[:16],
        "LAST": str(len(waves.waves) + 1),
        "PARAMETERS": _quote_json(stack_set_parameters),
        "PREFERENCES": _quote_json(waves.operation_preferences),
        "REGIONS": " ".join(waves.regions),
        "SOAK": str(waves.soak_minutes),
        "STACK_SET": waves.stack_set,
        "URL": shlex.quote(template_url),
        "WAVES": "\n".join(_list_wave_lines(waves)),
        "WHOSE": "\n".join(profile_lines),
    }
    return re.sub(
        "@([A-Z_]+)@", lambda match: value_by_placeholder[match[1]], ROLLOUT_SCRIPT.read_text()
    )


def _list_wave_lines(waves: Waves) -> Iterator[str]:
    """Yield one line of the script for each wave. Only wave 0 deploys the canaries."""
    units_of_all_waves = [unit for wave_units in waves.waves for unit in wave_units]
    canary_deployment_targets = _make_deployment_targets(units_of_all_waves, waves, "INTERSECTION")
    yield f"wave 0 {_quote_json(canary_deployment_targets)}"
    for wave_number, wave_units in enumerate(waves.waves, start=1):
        wave_deployment_targets = _make_deployment_targets(wave_units, waves, "DIFFERENCE")
        yield f"wave {wave_number} {_quote_json(wave_deployment_targets)}"


def _make_deployment_targets(
    units: Sequence[str], waves: Waves, filter_type: str
) -> dict[str, Any]:
    """Return the deployment targets of a wave, as StackSets expects them.

    With `filter_type` INTERSECTION they are the canaries in `units`, with DIFFERENCE all other
    accounts in `units`.
    """
    return {
        "OrganizationalUnitIds": list(units),
        "Accounts": list(waves.canaries),
        "AccountFilterType": filter_type,
    }


def _quote_json(value: Any) -> str:
    """Return a value as JSON, quoted as one word for a shell."""
    return shlex.quote(json.dumps(value))
