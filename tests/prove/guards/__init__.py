"""The gate on guards: every refusal and `except` branch is tested, and its test notices its loss.

A guard is a place in the product that declines or absorbs something: the making of a refusal, or
an `except` branch. Guards matter most on the day that something goes wrong, and a guard that no
test runs can break without anyone noticing. The gate asks three questions:

1. Does a test produce each refusal? Coverage of the tests answers.
2. Does a test run each `except` branch? Coverage answers.
3. If the guard of a refusal is removed, does a test fail? For each refusal the gate compiles the
   module without it and runs some of the tests that produce it.

`reviewed.yaml` lists guards that cannot be tested, each with its reason. A guard is named
by its module, its function and what it does, never by a line number, so the list survives edits.

The modules: `guard` finds guards in source text, `removal` makes them removable, `recorder` is the
pytest plugin that records what the tests run, `recording` reads that and picks the tests for a
guard, `nursery` removes guards and runs the tests, `review` reads the list, `proof` puts the
answers together.
"""
