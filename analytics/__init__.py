"""The nightly job: trail files and cases in, incidents out; job.py and storage/ alone touch
files.
"""
