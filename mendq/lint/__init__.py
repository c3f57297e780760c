"""Check of templates for faulty queues, with the catalogue's checks. It makes no AWS call."""
