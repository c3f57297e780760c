"""A scan in an account of moto's."""

from collections.abc import Iterator

import pytest

from tests.scan.scanning import Scanning, scanning


@pytest.fixture
def scanned() -> Iterator[Scanning]:
    with scanning() as made:
        yield made
