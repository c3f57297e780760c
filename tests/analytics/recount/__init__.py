"""An independent count of the nightly job's tables, over days of hostile input.

The count follows docs/incidents.md and docs/summary.md in plain Python, not the nightly job's code.
Both share only the reading of a record and its symptom.
"""
