"""A scan in an account of moto's."""

from tests.scan.scanner import scanner

__all__ = ["scanner"]
