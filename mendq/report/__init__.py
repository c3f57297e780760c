"""The weekly report: makes a page and a mail from a week's `summary.json`.

It calls no AWS service and reads no clock and no environment variables. It imports no other package
of mendq, because it is deployed in its own zip file: the charts' library alone has 80 MB.
"""
