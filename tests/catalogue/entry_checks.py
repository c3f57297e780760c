"""Find what an entry of the catalogue lacks, and say for each thing what to write.

The tests of the catalogue and `make check-symptom` use these checks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import botocore.session

from mendq.catalogue.symptom import (
    CallExample,
    FixedSymptom,
    NearMiss,
    NotifiedSymptom,
    QueueExample,
    QueueNearMiss,
    Symptom,
)
from mendq.model.failed_call import KNOWN_ERROR_CODES
from mendq.notifications.next_steps import NEXT_STEP_BY_REFUSAL_CODE
from tests.architecture.refusal_codes import codes_spelled_out
from tests.catalogue.asking import call_examples_of, queue_examples_of
from tests.catalogue.recorded_tags import explain_undeclared_tags, explain_unread_tags

LEAST_EXAMPLES = 2
LEAST_NEAR_MISSES = 3
# Nothing is lost and messages are finished, so people are notified without a page.
SYMPTOMS_THAT_NEVER_PAGE = frozenset({"backlog_grows", "heartbeat_ends_early"})
_AWS_DOCS = "https://docs.aws.amazon.com/"
# Each of these refusals opens a case, which needs a next step.
_REFUSALS_THAT_OPEN_A_CASE = dict.fromkeys(("Refuse", "Escalate", "Override"), 0)


def find_missing_in_entry(entry: Symptom) -> Iterator[str]:
    """Yield what the entry itself lacks."""
    yield from _find_missing_examples(entry)
    yield from _find_missing_answers(entry)
    if not entry.seen_as and entry.detection is None:
        yield (
            f"{entry.name} is never found: give it `detection` (a scan finds it) or `seen_as` "
            "(failed calls show it)."
        )
    for field in ("sentence", "plan_in_words", "first_step"):
        if not getattr(entry, field).endswith("."):
            yield f"`{field}` is no sentence: end it with a full stop."
    if not entry.aws_page.startswith(_AWS_DOCS):
        yield f"`aws_page` must be a page of {_AWS_DOCS}: it is where the facts come from."
    unknown_codes = sorted({pattern.error_code for pattern in entry.seen_as} - KNOWN_ERROR_CODES)
    if unknown_codes:
        yield (
            f"`seen_as` names the error code {', '.join(unknown_codes)}, which "
            "ERROR_CODES_BY_SYMPTOM in "
            "mendq/model/failed_call.py does not have: add it there under the symptom's name."
        )
    sqs = botocore.session.get_session().get_service_model("sqs")
    attributes = set(sqs.shape_for("QueueAttributeName").metadata["enum"])
    for attribute in sorted(set(entry.shown_attributes) - attributes):
        yield f"`shows` names {attribute}, which is no attribute of an SQS queue: correct it."
    yield from filter(None, (explain_undeclared_tags(entry), explain_unread_tags(entry)))


def _find_missing_examples(entry: Symptom) -> Iterator[str]:
    examples = entry.examples()
    if entry.seen_as and len(call_examples_of(entry)) < LEAST_EXAMPLES:
        yield (
            f"{len(call_examples_of(entry))} of {LEAST_EXAMPLES} examples of a failed call: add "
            'CallExample("what is special about it", failed_call("SendMessage", "Code")).'
        )
    if entry.detection is not None and len(queue_examples_of(entry)) < LEAST_EXAMPLES:
        yield (
            f"{len(queue_examples_of(entry))} of {LEAST_EXAMPLES} examples of a queue that has "
            'the fault: add QueueExample("what is special about it", '
            "standard_queue(DelaySeconds=900))."
        )
    kind = QueueNearMiss if entry.detection is not None else NearMiss
    near_misses = sum(isinstance(example, kind) for example in examples)
    if near_misses < LEAST_NEAR_MISSES:
        name = "QueueNearMiss" if entry.detection is not None else "CallNearMiss"
        yield (
            f"{near_misses} of {LEAST_NEAR_MISSES} near misses, which look like the fault and "
            f'are none: add {name}("why it is none", ...).'
        )
    titles = Counter((type(example).__name__, example.title) for example in examples)
    for (_, title), times in titles.items():
        if times > 1:
            yield f"{times} examples are called {title!r}: say what is special about each."


def _find_missing_answers(entry: Symptom) -> Iterator[str]:
    answered = [
        example for example in entry.examples() if isinstance(example, CallExample | QueueExample)
    ]
    if isinstance(entry, NotifiedSymptom):
        yield from _find_missing_outcomes(entry, answered)
    elif any(example.expected_outcome for example in answered):
        yield (
            "The examples have answers, but a ReportedSymptom changes nothing: leave the "
            "answers out, or make it a NotifiedSymptom or a FixedSymptom with a `plan`."
        )


def _find_missing_outcomes(
    entry: NotifiedSymptom, answered: list[CallExample | QueueExample]
) -> Iterator[str]:
    for example in answered:
        if not example.facts or not example.expected_outcome:
            yield (
                f"The example {example.title!r} has no answer: add the queue's facts, and the "
                "steps that Mendq plans for it or the code of the refusal."
            )
    plans = [example for example in answered if example.expected_outcome and _is_plan(example)]
    if isinstance(entry, FixedSymptom) and not plans:
        yield "No example has steps as its answer: add one, or make it a NotifiedSymptom."
    if not isinstance(entry, FixedSymptom) and plans:
        yield "An example has steps as its answer: make it a FixedSymptom with these `steps`."


def _is_plan(example: CallExample | QueueExample) -> bool:
    return not isinstance(example.expected_outcome, str)


def codes_without_next_step(path: Path) -> Iterator[str]:
    """Yield a sentence for each code of a refusal in the entry's file that has no next step."""
    for code in sorted(
        set(codes_spelled_out(path.read_text(), _REFUSALS_THAT_OPEN_A_CASE))
        - NEXT_STEP_BY_REFUSAL_CODE.keys()
    ):
        yield (
            f"The code `{code}` has no next step. Use a code that BY_CODE in "
            "mendq/notifications/next_steps.py has already, or add it there: "
            f'"{code}": ("What a person does next.", _LOOK).'
        )
