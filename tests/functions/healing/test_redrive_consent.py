"""Of which queues letters may be moved, and of which never."""

from __future__ import annotations

import pytest

from functions.healing.facts import Facts
from functions.healing.managed import Consent
from functions.healing.mode import Mode
from functions.healing.redrive_consent import redrive_is_off, why_not_to_move

QUEUE = "arn:aws:sqs:us-east-1:123456789012:orders-dlq"
BY_TAG = Consent(Mode.OBSERVE, Mode.HEAL)


@pytest.mark.parametrize("word", ["off", "OFF", " off ", "false", "no", "", "0", "onn"])
def test_what_is_not_on_is_off(word: str) -> None:
    assert redrive_is_off({"mendq:redrive": word})


def test_on_and_no_tag_forbid_nothing() -> None:
    assert not redrive_is_off({"mendq:redrive": "on"})
    assert not redrive_is_off({"mendq": "heal"})


@pytest.mark.parametrize(
    ("tags", "said"),
    [
        ({}, "not managed"),
        ({"mendq": "off"}, "not managed"),
        ({"mendq": "observe"}, "only observed"),
        ({"mendq": "what"}, "only observed"),
        ({"mendq": "heal", "mendq:redrive": "off"}, "mendq:redrive"),
        ({"mendq": "heal"}, None),
        ({"mendq": "propose"}, None),
    ],
)
def test_the_tags_of_a_queue_say_it(tags: dict[str, str], said: str | None) -> None:
    why = why_not_to_move(Facts(QUEUE, {}, tags), BY_TAG)
    assert (said in why) if said and why else why is None and said is None


def test_a_tag_that_the_settings_do_not_let_raise_is_observed() -> None:
    named = Consent(Mode.OBSERVE, Mode.OBSERVE)
    assert why_not_to_move(Facts(QUEUE, {}, {"mendq": "heal"}), named)


def test_no_letter_leaves_a_quarantine_by_mendq_s_own_doing() -> None:
    """The prefix of its source's name fits it, and so might a tag."""
    quarantine = Facts(QUEUE.replace("-dlq", "-quarantine"), {}, {"mendq": "heal"})
    why = why_not_to_move(quarantine, Consent(Mode.HEAL, Mode.HEAL, ("orders*",)))
    assert why is not None
    assert "not managed" in why


def test_the_settings_name_may_be_enough() -> None:
    assert (
        why_not_to_move(Facts(QUEUE, {}, {}), Consent(Mode.HEAL, Mode.HEAL, ("orders*",))) is None
    )
