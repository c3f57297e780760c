"""Mutation testing: change the product at random places, and count the changes that tests notice.

A mutant is the product with one small fault, such as `<` for `<=`. If all tests pass with it, it
survives: then no test would notice if a person made this mistake. `python -m tests.prove.mutate`
runs a sample of mutants and prints the survivors.

1. The choice depends only on the seed and on the source text. The same seed on the same tree gives
   the same mutants, so that a survivor can be looked at again. An edit changes the choice only for
   mutants of the edited lines, so that CI, with its fixed seed, tells about the change and not
   about chance.
2. The working tree is never written. A mutant is compiled in memory, and each runs in a forked
   process that has not imported the product yet.
3. Only tests that run the mutated line can notice the mutant. The coverage that
   `make test COVERAGE=1` records names them; the most specific of them run first. A mutant that no
   test runs is a survivor.
4. The chosen tests run first without a mutant. A test that fails then says nothing about mutants
   and is left out. Its processor time sets the time limit: a mutant that needs far more has
   probably lost the end of a loop, and counts as noticed.
5. Some mutants change nothing that anyone could notice. A person lists these in
   `equivalents.yaml`, each with the reason. They do not count, and at most 5 % of a run may be
   listed, so that the list cannot hide missing tests.

The modules: `operators` makes mutants of source text, `choice` picks a sample, `selection` picks
the tests, `nursery` runs them, `equivalents` reads the list, `report` prints and judges, `run` puts
these together, `proof` is the part of `make prove` and `make evidence`.
"""
