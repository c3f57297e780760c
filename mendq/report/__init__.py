"""A week's summary.json as a page and as text: no AWS, no clock, no environment.

It stands alone and travels in a zip of its own, because the charts' library is 80 MB.
"""
