"""One finding speaks for all that are about the same missing queue."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mendq.cases.finding import FEW_OTHERS, Finding, Shared
from mendq.heal.repeats import one_for_each, silent_for, with_others
from mendq.model.limits import Mode

PREFIX = "arn:aws:sqs:us-east-1:123456789012:"
_FINDINGS = st.lists(
    st.builds(
        lambda name, symptom, about: Finding(PREFIX + name, symptom, "gone", about=about),
        st.sampled_from("abcdef"),
        st.sampled_from(["lost", "late"]),
        st.sampled_from(["", f"{PREFIX}x", f"{PREFIX}y"]),
    ),
    unique=True,
)


def _arns(names: str) -> tuple[str, ...]:
    return tuple(PREFIX + name for name in names)


@given(_FINDINGS)
def test_nothing_is_lost_and_no_missing_queue_is_reported_twice(findings: list[Finding]) -> None:
    retained = one_for_each(findings, (), lambda _: Mode.HEAL)
    announced = [(each.symptom, each.about) for each in retained if each.about]
    assert len(announced) == len(set(announced))
    silent = silent_for(findings, retained)
    assert {*retained, *silent} == set(findings)
    assert not set(retained) & set(silent)
    for each, by in silent.items():
        assert (each.symptom, each.about) == (by.symptom, by.about)
        assert each.queue_arn in by.others
        assert each.queue_arn in by.sources


def test_an_open_case_then_the_mode_then_the_name_decide_who_speaks() -> None:
    findings = [Finding(arn, "lost", "gone", about=f"{PREFIX}x") for arn in _arns("cba")]
    modes = dict.fromkeys(_arns("bc"), Mode.HEAL)
    (first,) = one_for_each(findings, (), lambda _: Mode.HEAL)
    assert (first.queue_arn, first.others) == (f"{PREFIX}a", _arns("bc"))
    (first,) = one_for_each(findings, (), modes.get)
    assert first.queue_arn == f"{PREFIX}b"
    (first,) = one_for_each(findings, {f"{PREFIX}a lost"}, modes.get)
    assert first.queue_arn == f"{PREFIX}a"


def test_a_few_are_named_and_the_rest_is_counted() -> None:
    assert with_others("It is gone", Shared()) == "It is gone"
    assert with_others("It is gone", Shared(_arns("a"))) == (
        "It is gone. 1 other queue names it too: a"
    )
    shared = Finding(f"{PREFIX}z", "lost", "", others=_arns("abcde")).shared
    assert with_others("It is gone", shared) == (
        "It is gone. 5 other queues name it too: a, b, c and 2 more"
    )
    assert Shared.read(shared.document()) == shared


@given(
    st.dictionaries(
        st.sampled_from(["others", "more", "open_at"]),
        st.none()
        | st.booleans()
        | st.integers()
        | st.just(10**18)
        | st.lists(st.text() | st.just(f"{PREFIX}a")),
    )
)
def test_what_heal_is_told_may_be_anything(document: dict[str, Any]) -> None:
    read = Shared.read(document)
    assert len(read.others) <= FEW_OTHERS
    assert set(read.others) | set(read.open_at) <= {f"{PREFIX}a"}
    assert read.more >= 0
    assert len(with_others("", read)) < 1_000
