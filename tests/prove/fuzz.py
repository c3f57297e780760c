"""Anything at all into `read` and `match`, for a minute.

Hypothesis rather than a fuzzer that follows coverage: its wheels would have to be there for every
machine that `make` is to run on.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from mendq.catalogue import CATALOGUE, match
from mendq.catalogue.symptom import Caught, NotMatched, Symptom
from mendq.model.failed_call import KNOWN_CODES, FailedCall, Unreadable, read
from tests.model.test_failed_call import JSON, record
from tests.prove.proof import Proof, Proving

FUZZ_SECONDS = 45
EXAMPLES_A_ROUND = 200
MUTANTS_A_ROUND = 2_000
CODES = sorted(KNOWN_CODES)
EVENT_NAMES = (
    *("ChangeMessageVisibility", "DeleteMessage", "GetQueueAttributes", "ReceiveMessage"),
    *("SendMessage", "SendMessageBatch", "SetQueueAttributes"),
)
# CloudTrail cuts messages here; a cut one may end in the caller's text and says nothing.
CUT_AT_CHARACTERS = 1_024

Observation = Counter[str]


def never_raises(proving: Proving, seconds: float = FUZZ_SECONDS) -> None:
    seen: Observation = Counter()
    rounds: tuple[Callable[[int, Observation], None], ...] = (_anything, _records, _mutants)
    for turn in proving.time_box(seconds, at_least=len(rounds)):
        rounds[turn % len(rounds)](turn, seen)
    proving.note(dict(sorted(seen.items())))
    raised = sum(count for name, count in seen.items() if name.startswith("raised"))
    proving.holds("read and match raise nothing", whether=raised == 0)
    proving.holds(
        "some were read, some declined and some matched, or nothing was tried",
        whether=min(seen["read"], seen["declined"], seen["matched"]) > 0,
    )


def middle_never_decides(proving: Proving, seconds: float = FUZZ_SECONDS / 3) -> None:
    seen: Observation = Counter()
    for turn in proving.time_box(seconds, at_least=3):
        _callers_text(turn, seen)
    proving.note(dict(sorted(seen.items())))
    proving.holds("no text of a caller changed the symptom", whether=seen["decided_otherwise"] == 0)
    proving.holds("symptoms were among them", whether=seen["same_symptom"] > 0)


def _try(document: object, seen: Observation) -> None:
    seen["executions"] += 1
    try:
        call = read(document)
        if isinstance(call, Unreadable):
            seen["declined"] += 1
            return
        symptom = match(call)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        seen[f"raised {error!r:.80} on {document!r:.200}"] += 1
        return
    seen["read"] += 1
    seen["matched"] += symptom is not None


def _round(turn: int, test: Callable[..., None], *strategies: Any) -> None:
    """One seeded round; nothing is shrunk and nothing kept, so that rounds differ."""
    plain = settings(
        max_examples=EXAMPLES_A_ROUND,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    drawing: Any = given(*strategies)
    seed(turn)(plain(drawing(test)))()


def _anything(turn: int, seen: Observation) -> None:
    junk = st.binary(max_size=600) | JSON | JSON.map(lambda each: json.dumps(each, default=str))
    _round(turn, lambda document: _try(document, seen), junk)


def _records(turn: int, seen: Observation) -> None:
    """Calls of the catalogue's examples and others, with any value in any field."""
    fields = st.dictionaries(st.sampled_from(sorted(record())), JSON, max_size=2)
    codes = st.sampled_from(CODES) | st.text(max_size=30)
    others = st.tuples(codes, st.sampled_from(EVENT_NAMES), st.text(max_size=1_200))

    def test(call: tuple[str, str, str], over: dict[str, Any]) -> None:
        _try({**_dressed(*call), **over}, seen)

    _round(turn, test, st.sampled_from(_known_calls()) | others, fields)


def _mutants(turn: int, seen: Observation) -> None:
    """Bytes of good records with some of them turned, cut out or doubled."""
    dice = random.Random(turn)  # noqa: S311 - repeatable, no secret
    good = [json.dumps(_dressed(*each)).encode() for each in _known_calls()]
    for _ in range(MUTANTS_A_ROUND):
        mutant = bytearray(dice.choice(good))
        for _ in range(dice.choice((1, 1, 1, 2, 4, 16))):
            _mutate(mutant, dice)
        _try(bytes(mutant), seen)


def _mutate(mutant: bytearray, dice: random.Random) -> None:
    at, length = dice.randrange(len(mutant)), dice.choice((1, 1, 2, 8, 64))
    cut = mutant[at : at + length]
    change = dice.randrange(4)
    if change == 0:
        mutant[at] = dice.randrange(256)
    elif change == 1 and len(mutant) > length + 1:
        del mutant[at : at + length]
    elif change == 2:
        mutant[at:at] = cut * dice.choice((1, 2, 40))
    else:
        mutant[at:at] = dice.choice((b'"', b"{", b"[", b"\\", b"\xff", b"\\ud800", b"1e999", b"88"))


def _dressed(code: str, name: str, message: str) -> dict[str, Any]:
    return record(errorCode=code, eventName=name, errorMessage=message)


def _known_calls() -> list[tuple[str, str, str]]:
    """Code, name and message of the calls in the catalogue's own examples."""
    examples = (each for symptom in CATALOGUE for each in symptom.examples())
    calls = [each.call for each in examples if isinstance(each, Caught | NotMatched)]
    return sorted({(each.error_code, each.event_name, each.error_message) for each in calls})


def _known_messages() -> list[str]:
    return sorted({message for _, _, message in _known_calls()})


def _callers_text(turn: int, seen: Observation) -> None:
    """SQS's sentence around a harmless value and around a hostile one: the same symptom.

    A message that CloudTrail may have cut may point to none, or to what is only counted.
    """
    # Whole sentences of SQS, which a caller may know as well.
    scraps = st.sampled_from(
        [*_known_messages(), " for parameter ", "Reason: ", "is invalid. ", "\n", ""]
    )
    values = st.lists(scraps | st.text(max_size=30), max_size=6).map("".join)
    reasons = st.sampled_from(_reasons())
    parameters = st.sampled_from(["ReceiptHandle", "MessageBody", "QueueName", "VisibilityTimeout"])
    names = st.sampled_from(EVENT_NAMES)

    def test(value: str, parameter: str, reason: str, name: str) -> None:
        harmless = _symptom_of("AQEB", parameter, reason, name)
        hostile = _symptom_of(value, parameter, reason, name)
        seen["executions"] += 1
        if hostile is harmless is not None:
            seen["same_symptom"] += 1
            seen[f"same_symptom_{harmless.name}"] += 1
        message = _sentence(value, parameter, reason)
        may_be_cut = len(message.encode("utf-8", "replace")) >= CUT_AT_CHARACTERS
        is_silent = hostile is None or hostile.plan is None
        if hostile is not harmless and not (is_silent and may_be_cut):
            seen["decided_otherwise"] += 1
            seen[f"otherwise: {message!r:.200}"] += 1

    _round(turn, test, values, parameters, reasons, names)


def _reasons() -> list[str]:
    found = {each.rpartition("Reason: ")[2] for each in _known_messages() if "Reason: " in each}
    return sorted({*found, "The input receipt handle is invalid.", "Must be positive."})


def _sentence(value: str, parameter: str, reason: str) -> str:
    return f"Value {value} for parameter {parameter} is invalid. Reason: {reason}"


def _symptom_of(value: str, parameter: str, reason: str, name: str) -> Symptom | None:
    message = _sentence(value, parameter, reason)
    call = read(_dressed("InvalidParameterValue", name, message))
    return match(call) if isinstance(call, FailedCall) else None


FUZZ = (
    Proof("fuzz", "Whatever comes in, read and match answer and raise nothing.", never_raises),
    Proof(
        "callers_text",
        "The caller's text in the middle of SQS's message never decides.",
        middle_never_decides,
    ),
)
