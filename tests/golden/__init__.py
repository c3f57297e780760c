"""Golden files: content that the code produces, kept in git so that a person reads each change.

A golden file changes only by a reviewed diff:

1. `python -m tests.golden` computes the present content of every golden file and prints what
   differs, key by key, with the old and the new value. `make check` runs it.
2. The person who reads the difference decides. If the new content is wrong, the code must change.
3. If it is right, `python -m tests.golden accept FILE` writes that one file. There is no command
   that accepts all files, and no test writes one, because then nobody would read the differences.

`files` lists the golden files and the function that computes each, `differences` describes what
changed, `checks` is what tests call, and `__main__` is the command.
"""
