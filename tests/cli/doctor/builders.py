"""Trail selectors for the tests of the doctor."""

# The selectors of a trail that logs the data events of SQS queues.
SQS_DATA_EVENTS = (
    {"Field": "eventCategory", "Equals": ["Data"]},
    {"Field": "resources.type", "Equals": ["AWS::SQS::Queue"]},
)
