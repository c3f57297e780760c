"""Texts that all symptoms of a queue's policy share.

A policy says who may use the queue, and only people know who should. So Mendq reports such a fault
and never writes a statement of its own.
"""

from mendq.catalogue.symptom import SQS_GUIDE

REPORT_ONLY_PLAN_IN_WORDS = "Report it; never write a policy."
AWS_SECURITY_PAGE = f"{SQS_GUIDE}/sqs-security-best-practices.html"
