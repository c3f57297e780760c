"""What EMR Serverless answers instead of doing something, as its service model names it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Refused(Exception):
    """An error answer: its code, status and sentence."""

    code: str
    status: int
    message: str


def invalid(message: str) -> Refused:
    """The caller wrote something that no application would take."""
    return Refused("ValidationException", 400, message)


def not_found(what: str) -> Refused:
    """The application or the run is not there."""
    return Refused("ResourceNotFoundException", 404, f"{what} does not exist")


def conflict(message: str) -> Refused:
    """The client token was used for another run."""
    return Refused("ConflictException", 409, message)
