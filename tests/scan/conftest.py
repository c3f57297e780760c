"""The fixture `scanner`: a scan in a moto account."""

from tests.scan.scanner import scanner

__all__ = ["scanner"]
