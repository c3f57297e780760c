"""Measure how readable the code is: `python -m tests.architecture.style`, or `make style`.

The thresholds are those of well-known, readable projects. They are fixed: none becomes stricter
because the code got better, and there is none for the length of lines, functions or files. Code
that meets a number and is harder to read is worse than before.

1. `source` reads a file once and keeps what is counted in it: statements, loops, functions, names,
   docstrings, comments.
2. `names` and `prose` decide about one name and one text.
3. `measures` lists the measures, each with its threshold and the places that do not meet it.
4. `table` prints them for each area of the repository.

`make check` fails if an area whose `is_gate` is true is above a threshold (`areas`). Names that
users call are not counted (`exceptions`).
"""
