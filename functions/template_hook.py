"""Check a queue, or a policy of queues, before CloudFormation creates or changes it.

https://docs.aws.amazon.com/cloudformation-cli/latest/hooks-userguide/lambda-hooks-create-lambda-function.html
"""

from __future__ import annotations

from functions.entry import Event, LambdaInvocation, entry
from mendq.lint.proposed import CHECKED_RESOURCE_TYPES, check_proposed_resource
from mendq.lint.template import NotATemplate, get_mapping
from mendq.lint.values import DeployTarget
from mendq.model.settings import TemplateHookSettings
from mendq.notifications.text import to_plain_text

# The hook checks at these points. Before a deletion, CloudFormation sends no properties to check.
_CHECKED_INVOCATION_POINTS = ("CREATE_PRE_PROVISION", "UPDATE_PRE_PROVISION")
_MAXIMUM_TOKEN_LENGTH = 1_024


@entry(TemplateHookSettings)
def handler(event: Event, invocation: LambdaInvocation[TemplateHookSettings]) -> Event:
    """Check the proposed resource. Never raise.

    Returns:
        The hook's status and a message. If the resource shows a symptom, the status is FAILED with
        `NonCompliant`; the hook's failure mode decides if that stops the deployment. If the check
        itself fails, the status is FAILED with `InternalFailure` if the hook stops deployments,
        otherwise SUCCESS. The status is SUCCESS for types that Mendq does not check, and for
        deletions.
    """
    request_data = get_mapping(event, "requestData") or {}
    hook_event = get_mapping(event) or {}
    request_token = hook_event.get("clientRequestToken")
    settings = invocation.settings
    hook_answer = {
        "clientRequestToken": request_token[:_MAXIMUM_TOKEN_LENGTH]
        if isinstance(request_token, str)
        else ""
    }
    resource_type = request_data.get("targetName")
    error_code = ""
    if (
        resource_type not in CHECKED_RESOURCE_TYPES
        or hook_event.get("actionInvocationPoint") not in _CHECKED_INVOCATION_POINTS
    ):
        return {**hook_answer, "hookStatus": "SUCCESS", "message": "Mendq: nothing to judge"}
    resource_properties = (get_mapping(request_data, "targetModel") or {}).get("resourceProperties")
    deploy_target = DeployTarget(settings.account, invocation.clients.region)
    logical_id = request_data.get("targetLogicalId")
    try:
        resource = check_proposed_resource(
            resource_type, logical_id, resource_properties, deploy_target, settings.hook_ignores
        )
        hook_message = resource.format_message()
        symptoms = [finding.symptom for finding in resource.findings]
        invocation.log.info(
            "checked a proposed resource", resource=resource.logical_id, found=symptoms
        )
        error_code = "NonCompliant" if symptoms else ""
    except Exception as error:
        failure_reason = (
            to_plain_text(error) if isinstance(error, NotATemplate) else type(error).__name__
        )
        invocation.log.exception("could not check a proposed resource", target=resource_type)
        hook_message = f"Mendq: could not be judged: {failure_reason}"
        error_code = "InternalFailure" if settings.hook_fails else ""
    status_fields = (
        {"hookStatus": "FAILED", "errorCode": error_code}
        if error_code
        else {"hookStatus": "SUCCESS"}
    )
    return {**hook_answer, **status_fields, "message": hook_message}
