"""The nightly job: it turns trail files and cases into tables of incidents and a weekly summary.

Only `storage.py`, and Spark through it, opens files. `job.py` is the command.
"""
