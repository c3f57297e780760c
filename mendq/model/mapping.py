"""Settings of an SQS queue's event source mapping, and which of them Lambda refuses.

By default, Lambda itself decides how many event pollers receive for a mapping. Two settings limit
the concurrent invocations of the function, and a mapping has at most one of them:

- MaximumConcurrency (ScalingConfig) limits the invocations.
- Provisioned mode (ProvisionedPollerConfig) sets the smallest and largest number of pollers. Each
  poller makes up to 10 concurrent invocations.

https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
https://docs.aws.amazon.com/lambda/latest/api/API_ProvisionedPollerConfig.html
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-parameters.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

# The batch size of a mapping that does not set one.
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-parameters.html
DEFAULT_BATCH_SIZE = 10
# The largest batch without a batching window. For a FIFO queue, no larger batch is possible.
LARGEST_BATCH_WITHOUT_WINDOW = 10
LARGEST_BATCH_SIZE = 10_000
LONGEST_BATCHING_WINDOW_SECONDS = 300

LOWEST_MAXIMUM_CONCURRENCY = 2
HIGHEST_MAXIMUM_CONCURRENCY = 1_000

RUNS_PER_POLLER = 10
# The concurrent invocations with which Lambda begins on a standard queue without a limit.
RUNS_OF_FIRST_POLLERS = 5
FEWEST_POLLERS = 2
LARGEST_MINIMUM_POLLERS = 200
# AWS's pages of November 2025 say 2,000, its API reference of 2026 says 10,000.
LARGEST_MAXIMUM_POLLERS = 10_000
DEFAULT_MINIMUM_POLLERS = FEWEST_POLLERS
DEFAULT_MAXIMUM_POLLERS = 200

# How many receives Lambda keeps waiting at once on an idle queue. Without MaximumConcurrency and
# without provisioned mode, it is 2.
FEWEST_IDLE_POLLERS = 2
IDLE_POLLERS_WITH_MAXIMUM_CONCURRENCY = 5
# A receive of an idle queue waits 20 s.
IDLE_RECEIVES_PER_MINUTE = 3

LONGEST_FUNCTION_TIMEOUT_SECONDS = 900
# The most filters of a mapping. Above five, AWS must raise a quota.
# https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html
MOST_FILTERS = 10
# Settings that only mappings of streams have. Lambda says "Unsupported ... parameter for given
# event source mapping type".
# https://docs.aws.amazon.com/lambda/latest/api/API_CreateEventSourceMapping.html
STREAM_SETTINGS = (
    "BisectBatchOnFunctionError",
    "MaximumRecordAgeInSeconds",
    "MaximumRetryAttempts",
    "ParallelizationFactor",
    "TumblingWindowInSeconds",
)
# A variable that a tool replaces at deployment.
_REPLACED_TEXT_REGEX = re.compile(r"\$\{|\{\{resolve:")

MODES_EXCLUDE_EACH_OTHER = "MaximumConcurrency and provisioned mode exclude each other"


@dataclass(frozen=True)
class ProvisionedPollers:
    """The pollers of a mapping in provisioned mode.

    Attributes:
        minimum: The number of pollers that Lambda always keeps.
        maximum: The number of pollers up to which Lambda scales.
    """

    minimum: int = DEFAULT_MINIMUM_POLLERS
    maximum: int = DEFAULT_MAXIMUM_POLLERS

    @property
    def most_runs(self) -> int:
        """The most concurrent invocations of the function."""
        return RUNS_PER_POLLER * self.maximum


@dataclass(frozen=True)
class MappingSettings:
    """The settings of one mapping that limit each other.

    Attributes:
        is_fifo: True if the mapping reads a FIFO queue.
        batch_size: The most messages in a batch.
        batching_window_seconds: How long Lambda collects messages for a batch.
        maximum_concurrency: The most concurrent invocations; None if the mapping does not set it.
        provisioned_pollers: The pollers; None if the mapping is not in provisioned mode.
    """

    is_fifo: bool
    batch_size: int = DEFAULT_BATCH_SIZE
    batching_window_seconds: int = 0
    maximum_concurrency: int | None = None
    provisioned_pollers: ProvisionedPollers | None = None


def list_mapping_refusals(settings: MappingSettings) -> Iterator[str]:
    """Yield each reason why Lambda refuses these settings; nothing if Lambda accepts them."""
    yield from _list_batch_refusals(settings)
    maximum_concurrency = settings.maximum_concurrency
    pollers = settings.provisioned_pollers
    if maximum_concurrency is not None and pollers is not None:
        yield MODES_EXCLUDE_EACH_OTHER
    if maximum_concurrency is not None and not (
        LOWEST_MAXIMUM_CONCURRENCY <= maximum_concurrency <= HIGHEST_MAXIMUM_CONCURRENCY
    ):
        yield (
            f"MaximumConcurrency is {maximum_concurrency:,}, and Lambda accepts "
            f"{LOWEST_MAXIMUM_CONCURRENCY} to {HIGHEST_MAXIMUM_CONCURRENCY:,}"
        )
    if pollers is not None:
        yield from _list_poller_refusals(pollers)


def _list_batch_refusals(settings: MappingSettings) -> Iterator[str]:
    """Yield each reason why Lambda refuses the batch size or the batching window."""
    batch_size = settings.batch_size
    window_seconds = settings.batching_window_seconds
    is_batch_possible = 1 <= batch_size <= LARGEST_BATCH_SIZE
    if not is_batch_possible:
        yield f"BatchSize is {batch_size:,}, and Lambda accepts 1 to {LARGEST_BATCH_SIZE:,}"
    if not 0 <= window_seconds <= LONGEST_BATCHING_WINDOW_SECONDS:
        yield (
            f"MaximumBatchingWindowInSeconds is {window_seconds:,}, and Lambda accepts 0 to "
            f"{LONGEST_BATCHING_WINDOW_SECONDS}"
        )
    is_large_batch = is_batch_possible and batch_size > LARGEST_BATCH_WITHOUT_WINDOW
    if settings.is_fifo and is_large_batch:
        yield f"a FIFO queue has a BatchSize of at most {LARGEST_BATCH_WITHOUT_WINDOW}"
    if settings.is_fifo and window_seconds:
        yield "a FIFO queue has no MaximumBatchingWindowInSeconds"
    if is_large_batch and not window_seconds and not settings.is_fifo:
        yield (
            f"a BatchSize above {LARGEST_BATCH_WITHOUT_WINDOW} needs a "
            "MaximumBatchingWindowInSeconds of at least 1"
        )


def _list_poller_refusals(pollers: ProvisionedPollers) -> Iterator[str]:
    """Yield each reason why Lambda refuses the numbers of pollers."""
    if not FEWEST_POLLERS <= pollers.minimum <= LARGEST_MINIMUM_POLLERS:
        yield (
            f"MinimumPollers is {pollers.minimum:,}, and Lambda accepts {FEWEST_POLLERS} to "
            f"{LARGEST_MINIMUM_POLLERS}"
        )
    if not FEWEST_POLLERS <= pollers.maximum <= LARGEST_MAXIMUM_POLLERS:
        yield (
            f"MaximumPollers is {pollers.maximum:,}, and Lambda accepts {FEWEST_POLLERS} to "
            f"{LARGEST_MAXIMUM_POLLERS:,}"
        )
    if pollers.minimum > pollers.maximum:
        yield "MinimumPollers must be at most MaximumPollers"


def find_filter_refusal(patterns: Sequence[Any], unknown_text: str) -> str:
    """Return why Lambda refuses the filter criteria of a mapping; empty if Lambda accepts them.

    Args:
        patterns: The patterns of the filters, as texts.
        unknown_text: The stand-in for what is not known. A pattern with it is not judged.
    """
    if len(patterns) > MOST_FILTERS:
        return f"it has {len(patterns):,} filters, and Lambda accepts at most {MOST_FILTERS}"
    for pattern in patterns:
        if not isinstance(pattern, str) or unknown_text in pattern:
            continue
        if _REPLACED_TEXT_REGEX.search(pattern):
            continue
        try:
            document = json.loads(pattern)
        except (ValueError, RecursionError):
            return "the Pattern of a filter is not JSON"
        if not isinstance(document, dict):
            return "the Pattern of a filter must be a JSON object"
        wrong_key = _find_key_without_list(document)
        if wrong_key:
            return f"in the Pattern of a filter, the values of {wrong_key!r} must be a list"
    return ""


def _find_key_without_list(document: dict[str, Any]) -> str:
    """Return the first key of a filter pattern whose values are no list. Empty if there is none."""
    for key, value in document.items():
        if isinstance(value, dict):
            wrong_key = _find_key_without_list(value)
            if wrong_key:
                return wrong_key
        elif not isinstance(value, list):
            return key[:60]
    return ""
