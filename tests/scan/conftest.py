"""A scan in an account of moto's."""

from tests.scan.scanning import scanned

__all__ = ["scanned"]
