"""Every name of MiniStack that the local account hooks or reads and nobody promised to keep.

A new version may move any of them without a word: the test of this table says which.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator, Mapping
from importlib.metadata import version

PINNED = "1.5.33"

# Module -> name -> a function's parameters, or the type of anything else.
NAMES: Mapping[str, Mapping[str, str]] = {
    "ministack.app": {
        "AUTH": "bool",
        "SERVICE_HANDLERS": "dict",
        "_enforce_data_plane": (
            "(service, iam_action, headers, query_params, request_id, resource_arn, "
            "service_context, auth_error_response, named_resource)"
        ),
        "_handle_ses_v2_request": "(method, path, headers, body, query_params, request_id)",
        "app": "(scope, receive, send)",
    },
    "ministack.core.arn": {
        "parse_arn": "(value)",
    },
    "ministack.core.concurrency": {
        "esm_wake": "Event",
    },
    "ministack.core.iam_actions": {
        "access_denied_response": (
            "(service, action, principal_arn, request_id, error_code, message, headers, "
            "resource_arn, explicit_deny, resource_policy_arn)"
        ),
        "extract_iam_action": "(service, method, path, headers, body, query_params)",
        "SERVICE_TO_IAM_NAMESPACE": "dict",
        "_BOTOCORE_SERVICE_MAP": "dict",
        "_param": "(body, query_params, fields)",
        "extract_resource_arn": (
            "(service, method, path, headers, body, query_params, region, account_id)"
        ),
    },
    "ministack.core.iam_evaluator": {
        "CredentialResolutionError": "type",
        "EvalContext": "type",
        "PrincipalInfo": "type",
        "_gather_role_policies": "(role_name, account_id)",
        "caller_arn": "()",
        "combine_resource_policy": "(identity, ctx, policy, owner_account, required, limits)",
        "find_iam_access_key_account": "(access_key_id)",
        "is_root_access_key": "(access_key_id)",
        "enforce": ("(access_key_id, iam_action, service, region, resource_arn, service_context)"),
        "evaluate": "(ctx, policies, limits)",
        "evaluate_resource_policy": "(doc, ctx, service, named_only, direct_only)",
        "request_caller_arn": "(headers, query_params)",
        "pin_request_origin": "(source_ip, secure_transport)",
        "resolve_credential": "(access_key_id, account_id, session_token)",
    },
    "ministack.core.lambda_runtime": {
        "Worker": "type",
        "_RESERVED_RUNTIME_ENV_VARS": "set",
        "_account_region_from_function_config": "(config)",
        "execution_credentials": "(config)",
        "reset": "()",
        "subprocess": "module",
    },
    "ministack.core.responses": {
        "error_response_json": "(code, message, status, extra, message_key, content_type)",
        "get_account_id": "()",
        "get_region": "()",
        "new_uuid": "()",
        "request_scope": "(account_id, region)",
    },
    "ministack.core.router": {
        "extract_access_key_id": "(headers, query_params)",
    },
    "ministack.services.cloudformation.changesets": {
        "validate_template_support": "(template, conditions, params)",
    },
    "ministack.services.cloudformation.handlers": {
        "validate_template_support": "(template, conditions, params)",
    },
    "ministack.services.cloudformation.provisioners": {
        "_NAME_SEED": "ContextVar",
        "_RESOURCE_HANDLERS": "dict",
    },
    "ministack.services.cloudtrail": {
        "_DEFAULT_EVENT_SELECTORS": "list",
        "_DISPATCH": "dict",
        "_event_selectors": "AccountRegionScopedDict",
        "_trail_arn": "(name)",
        "_trails": "AccountRegionScopedDict",
    },
    "ministack.services.cloudwatch": {
        "_cbor_ok": "(data)",
        "_dims_from_list": "(dimensions)",
        "_dims_key": "(dims)",
        "_error": "(code, message, status, use_json, use_cbor)",
        "_evaluate_alarm": "(alarm)",
        "_evaluate_all_alarms": "()",
        "_get_metric_data": "(params, cbor_data, is_cbor, is_json)",
        "_get_metric_statistics": "(params, cbor_data, is_cbor, is_json)",
        "_json_ok": "(data)",
        "_list_metrics": "(params, cbor_data, is_cbor, is_json)",
        "_metrics": "AccountRegionScopedDict",
        "_parse_ts": "(value)",
        "record_metric": "(namespace, metric_name, value, unit, dimensions)",
        "_store_datum": "(namespace, name, dims, ts, unit, value, values, counts, stat_values)",
    },
    "ministack.services.eventbridge": {
        "_cron_next_fire": "(fields, after_dt)",
        "_dispatch_event": "(event, view)",
        "_dispatch_to_sqs": "(spec, payload, sqs_parameters)",
        "_event_pattern_error": "(pattern_str)",
        "_invoke_target": "(target, event, rule, view)",
        "_matches_pattern_view": "(pattern_str, view, owner)",
        "_parse_cron_fields": "(expr)",
        "_parse_rate_seconds": "(expr)",
        "_pattern_event_view": "(event)",
        "_put_events": "(data, allow_aws_source)",
        "_rules": "AccountRegionScopedDict",
        "_targets": "AccountRegionScopedDict",
    },
    "ministack.services.iam": {
        "_roles": "AccountScopedDict",
    },
    "ministack.services.lambda_svc": {
        "_create_esm": "(data)",
        "_event_invoke_config": "(func, qualifier)",
        "_execute_function_warm": "(func, event, request_id)",
        "_emit_lambda_logs": "(func, request_id, log_text, error, duration_ms, log_source)",
        "_emit_lambda_metrics": "(function_name, duration_ms, error, throttle)",
        "_get_func_record_for_qualifier": "(name, qualifier)",
        "_iter_all_esms": "()",
        "_route_async_failure": "(target_arn, func_name, event, result)",
    },
    "ministack.services.s3": {
        "bucket_policy_for_arn": "(resource_arn)",
    },
    "ministack.services.scheduler": {
        "_SCHEDULE_TICK_INTERVAL": "int",
        "_schedules": "AccountRegionScopedDict",
        "_tick_schedules": "()",
    },
    "ministack.services.ses_v2": {
        "_identities": "AccountRegionScopedDict",
        "handle_request": "(method, path, headers, body, query_params)",
    },
    "ministack.services.sns": {
        "_error": "(code, message, status)",
        "_list_subscriptions": "(params)",
        "_list_subscriptions_by_topic": "(params)",
        "_normalize_arn": "(arn)",
        "_p": "(params, key, default)",
        "_publish": "(params)",
        "_publish_batch": "(params)",
        "_topic_by_arn_any_scope": "(topic_arn)",
        "_topics": "AccountRegionScopedDict",
    },
    "ministack.services.sqs": {
        "_Err": "type",
        "_HANDLERS": "dict",
        "_QUERY_COMPAT_CODES": "dict",
        "_act_send_message": "(data, qurl)",
        "_collect_msgs": "(q, max_n, vis_timeout)",
        "_delete_messages_for_esm": "(queue_url, receipt_handles)",
        "_dlq_sweep": "(q)",
        "_enforce_queue_policy": "(q, iam_action)",
        "_ensure_msg_fields": "(m)",
        "_expire_retained": "(q)",
        "_get_q": "(url, action)",
        "_json_err_resp": "(code, msg, status)",
        "_normalise": "(action, params)",
        "_queue_by_arn": "(arn)",
        "_queues": "AccountRegionScopedDict",
        "_queues_lock": "lock",
        "_receive_messages_for_esm": "(queue_url, max_number)",
        "_refresh_counts": "(q)",
        "_validate_batch_entries": "(entries, entry_name)",
        "_xml_err_resp": "(code, msg, status)",
        "queue_policy_allows": "(queue_arn, service, source_arn, source_account)",
    },
    "ministack.services.tagging": {
        "_HANDLERS": "dict",
    },
    "ministack.services.sts": {
        "_sessions": "dict",
        "register_session": "(access_key, session)",
    },
}


def moved() -> Iterator[str]:
    """What is no longer as it was, one sentence each."""
    found = version("ministack")
    if found != PINNED:
        yield f"ministack is {found}, the hooks were written for {PINNED}"
    for module_name, names in NAMES.items():
        module = importlib.import_module(module_name)
        for name, shape in names.items():
            if not hasattr(module, name):
                yield f"{module_name}.{name} is gone"
            elif (now := shape_of(getattr(module, name))) != shape:
                yield f"{module_name}.{name} was {shape} and is {now}"


def shape_of(thing: object) -> str:
    """The names of a function's parameters, the type's name of anything else."""
    if inspect.isfunction(thing):
        return f"({', '.join(inspect.signature(thing).parameters)})"
    return type(thing).__name__
