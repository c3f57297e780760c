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

from mendq.catalogue import CATALOGUE, find_symptom_of
from mendq.catalogue.symptom import CallExample, CallNearMiss
from mendq.model.failed_call import KNOWN_ERROR_CODES, UnreadableRecord, read
from tests.model.builders import JSON, make_record
from tests.prove.proof import Proof, Proving

FUZZ_SECONDS = 45
EXAMPLES_A_ROUND = 200
MUTANTS_A_ROUND = 2_000
CODES = sorted(KNOWN_ERROR_CODES)
EVENT_NAMES = (
    *("ChangeMessageVisibility", "DeleteMessage", "GetQueueAttributes", "ReceiveMessage"),
    *("SendMessage", "SendMessageBatch", "SetQueueAttributes"),
)

Observation = Counter[str]


def never_raises(proving: Proving, seconds: float = FUZZ_SECONDS) -> None:
    seen: Observation = Counter()
    rounds: tuple[Callable[[int, Observation], None], ...] = (_anything, _records, _mutants)
    for turn_of_run in proving.time_box(seconds, at_least=len(rounds)):
        turn = proving.seed + turn_of_run
        rounds[turn % len(rounds)](turn, seen)
    proving.note(dict(sorted(seen.items())))
    raised = sum(count for name, count in seen.items() if name.startswith("raised"))
    proving.holds("read and match raise nothing", whether=raised == 0)
    proving.holds(
        "some were read, some declined and some matched, or nothing was tried",
        whether=min(seen["read"], seen["declined"], seen["matched"]) > 0,
    )


def _try(document: object, seen: Observation) -> None:
    seen["executions"] += 1
    try:
        call = read(document)
        if isinstance(call, UnreadableRecord):
            seen["declined"] += 1
            return
        symptom = find_symptom_of(call)
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
    fields = st.dictionaries(st.sampled_from(sorted(make_record())), JSON, max_size=2)
    codes = st.sampled_from(CODES) | st.text(max_size=30)
    others = st.tuples(codes, st.sampled_from(EVENT_NAMES), st.text(max_size=1_200))

    def test(call: tuple[str, str, str], over: dict[str, Any]) -> None:
        _try({**_make_record(*call), **over}, seen)

    _round(turn, test, st.sampled_from(_known_calls()) | others, fields)


def _mutants(turn: int, seen: Observation) -> None:
    """Bytes of good records with some of them turned, cut out or doubled."""
    dice = random.Random(turn)  # noqa: S311 - repeatable, no secret
    good = [json.dumps(_make_record(*known_call)).encode() for known_call in _known_calls()]
    for _ in range(MUTANTS_A_ROUND):
        mutant = bytearray(dice.choice(good))
        for _ in range(dice.choice((1, 1, 1, 2, 4, 16))):
            _mutate(mutant, dice)
        _try(bytes(mutant), seen)


def _mutate(mutant: bytearray, dice: random.Random) -> None:
    at = dice.randrange(len(mutant))
    length = dice.choice((1, 1, 2, 8, 64))
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


def _make_record(code: str, name: str, message: str) -> dict[str, Any]:
    return make_record(errorCode=code, eventName=name, errorMessage=message)


def _known_calls() -> list[tuple[str, str, str]]:
    """Code, name and message of the calls in the catalogue's own examples."""
    examples = (example for symptom in CATALOGUE for example in symptom.examples())
    calls = [
        example.call for example in examples if isinstance(example, CallExample | CallNearMiss)
    ]
    return sorted({(call.error_code, call.event_name, call.error_message) for call in calls})


FUZZ = (Proof("fuzz", "Whatever comes in, read and match answer and raise nothing.", never_raises),)
