"""Every table of mutants."""

from __future__ import annotations

from tests.prove.mutants.catalogue import CATALOGUE
from tests.prove.mutants.guardrails import GUARDRAILS
from tests.prove.mutants.nightly import NIGHTLY
from tests.prove.mutants.people import PEOPLE
from tests.prove.mutants.policies import POLICIES
from tests.prove.mutants.redrive import REDRIVE
from tests.prove.mutants.writes import WRITES

SELECTIONS = (*GUARDRAILS, *WRITES, *POLICIES, *CATALOGUE, *REDRIVE, *NIGHTLY, *PEOPLE)
