"""Bad delivery: off by default, and the same for the same seed."""

from __future__ import annotations

import random

from local_account.cloudtrail.faults import DeliveryFaults

EVENTS = 2_000


def _deliveries(faults: DeliveryFaults) -> list[tuple[float, ...]]:
    chance = random.Random(faults.seed)  # noqa: S311
    return [faults.deliveries(chance) for _ in range(EVENTS)]


def test_nothing_goes_wrong_by_default() -> None:
    assert set(_deliveries(DeliveryFaults())) == {(0,)}


def test_delay_comes_before_everything() -> None:
    assert set(_deliveries(DeliveryFaults(delay_seconds=3))) == {(3,)}


def test_reordering_spreads_arrivals() -> None:
    lags = [lag for (lag,) in _deliveries(DeliveryFaults(reordered_within_seconds=5))]
    assert lags != sorted(lags)
    assert 0 <= min(lags) < 1
    assert 4 < max(lags) <= 5


def test_duplicates_and_losses_keep_their_share() -> None:
    faults = DeliveryFaults(duplicated_share=0.2, lost_share=0.1)
    counts = [len(each) for each in _deliveries(faults)]
    assert 0.07 < counts.count(0) / EVENTS < 0.13
    assert 0.14 < counts.count(2) / EVENTS < 0.22


def test_everything_can_be_lost() -> None:
    assert set(_deliveries(DeliveryFaults(lost_share=1))) == {()}


def test_a_seed_repeats_itself_and_another_does_not() -> None:
    faults = DeliveryFaults(duplicated_share=0.5, lost_share=0.5, seed=7)
    assert _deliveries(faults) == _deliveries(faults)
    assert _deliveries(faults) != _deliveries(DeliveryFaults(0, 0, 0.5, 0.5, seed=8))
