"""The nightly job counted by somebody who distrusts it: hostile days, and what they come to.

Nothing here was written with the nightly job's code in sight: the count follows the sentences of
the contract and of docs/summary.md, in plain Python, and shares with the nightly job only the
reading of a record and its symptom.
"""
