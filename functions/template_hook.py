"""Answer CloudFormation before it makes or changes a queue or a policy of queues.

https://docs.aws.amazon.com/cloudformation-cli/latest/hooks-userguide/lambda-hooks-create-lambda-function.html
"""

from __future__ import annotations

from functions.entry import Call, Event, entry
from mendq.lint.proposed import TARGETS, check_proposed
from mendq.lint.template import NotATemplate, get_mapping
from mendq.lint.values import DeployTarget
from mendq.model.settings import TemplateHookSettings
from mendq.notifications.text import plain

# What it looks at; of what is deleted no properties are proposed.
_POINTS = ("CREATE_PRE_PROVISION", "UPDATE_PRE_PROVISION")
_MOST_TOKEN = 1_024


@entry(TemplateHookSettings)
def handler(event: Event, call: Call[TemplateHookSettings]) -> Event:
    """The status that the hook asks for; FAILED with `NonCompliant` where something is found.

    Whether that stops the deployment, the hook's own failure mode says. It does not raise: what it
    cannot judge goes through, unless the hook stops deployments: then it is `InternalFailure`.
    """
    request, said = get_mapping(event, "requestData") or {}, get_mapping(event) or {}
    token, settings = said.get("clientRequestToken"), call.settings
    answer = {"clientRequestToken": token[:_MOST_TOKEN] if isinstance(token, str) else ""}
    target, code = request.get("targetName"), ""
    if target not in TARGETS or said.get("actionInvocationPoint") not in _POINTS:
        return {**answer, "hookStatus": "SUCCESS", "message": "Mendq: nothing to judge"}
    properties = (get_mapping(request, "targetModel") or {}).get("resourceProperties")
    where, name = (
        DeployTarget(settings.account, call.clients.region),
        request.get("targetLogicalId"),
    )
    try:
        found = check_proposed(target, name, properties, where, settings.hook_ignores)
        symptoms, message = [each.symptom for each in found.findings], found.message()
        call.log.info("judged a proposed resource", resource=found.name, found=symptoms)
        code = "NonCompliant" if symptoms else ""
    except Exception as error:
        because = plain(error) if isinstance(error, NotATemplate) else type(error).__name__
        call.log.exception("could not judge a proposed resource", target=target)
        message = f"Mendq: could not be judged: {because}"
        code = "InternalFailure" if settings.hook_fails else ""
    status = {"hookStatus": "FAILED", "errorCode": code} if code else {"hookStatus": "SUCCESS"}
    return {**answer, **status, "message": message}
