"""The ranges and floors of `limits` and `timing`, whose classes the core owns."""

from __future__ import annotations

from infra.settings.kinds import Number
from infra.settings.sections import Setting

LIMITS = {
    "writes_per_minute": Setting(
        Number(1, 100), "The most writes to queues in a minute, over the whole account."
    ),
    "writes_per_attribute_per_day": Setting(
        Number(1, 24), "The most writes to one attribute of one queue in 24 hours."
    ),
    "mass_symptom_share": Setting(
        Number(0, 1, whole=False),
        "Above this share of the managed queues in an hour a symptom is not theirs: nothing is "
        "written.",
    ),
    "visibility_ceiling_seconds": Setting(
        Number(30, 43_200), "The longest visibility timeout that a fix may set."
    ),
    "sweep_metrics_per_day": Setting(
        Number(0, 1_000_000), "The most metrics that looking for symptoms may ask for in a day."
    ),
}

TIMING = {
    "propagation_seconds": Setting(
        Number(0, 900, floor=60),
        "How long a change takes to reach all of SQS; AWS says up to 60 seconds.",
    ),
    "watch_hours": Setting(
        Number(0, 336, floor=24), "How long a verified fix is watched; a day has its own rhythm."
    ),
    "proposal_hours": Setting(
        Number(0, 168, floor=1), "How long a proposal waits; a person needs time to see it."
    ),
    "soak_factor": Setting(
        Number(0, 10, whole=False, floor=1.2),
        "How often the time that a poison message takes to come back is waited for.",
    ),
    "cooldown_minutes": Setting(
        Number(0, 1_440, floor=30), "The time between two writes to one attribute of one queue."
    ),
    "pulse_minutes": Setting(
        Number(1, 1_440, floor=20),
        "The time between two pulses; one that is not seen within 20 minutes counts as lost.",
    ),
    "measuring_minutes": Setting(
        Number(0, 360, floor=60),
        "How long a queue must have been as it is before what is measured of it says anything.",
    ),
}
