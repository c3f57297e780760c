"""The night counted by somebody who distrusts it: hostile days, and what they come to.

Nothing here was written with the night's code in sight: the count follows the sentences of the
contract and of docs/summary.md, in plain Python, and shares with the night only the reading of a
record and its label.
"""
