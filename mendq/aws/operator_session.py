"""The boto3 session of an operator who types `mendq`.

AWS_PROFILE and AWS_ENDPOINT_URL mean what they mean to the AWS CLI: boto3 reads them itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from mendq.model.names import OPERATOR_USER_AGENT

if TYPE_CHECKING:
    import boto3

    Session: TypeAlias = boto3.Session


def make_operator_session(
    profile: str | None,
    region: str | None,
    defaults: Mapping[str, Any],
    endpoint_error: Callable[[ValueError], Exception],
) -> Session:
    """Return a session with an operator's own credentials.

    boto3 is imported here, so that a command's help does not wait for it.

    Args:
        profile: The profile to use, or None for the default one.
        region: The region to use, or None for the profile's.
        defaults: botocore's settings for clients that are created without settings of their own.
        endpoint_error: Makes the exception that a client raises if its endpoint is not a URL.

    Raises:
        ProfileNotFound: There is no such profile.
    """
    import boto3  # noqa: PLC0415
    from botocore.config import Config  # noqa: PLC0415
    from botocore.session import get_session  # noqa: PLC0415

    class SessionWithEndpointCheck(boto3.Session):
        def client(self, *arguments: Any, **keywords: Any) -> Any:
            try:
                return super().client(*arguments, **keywords)
            except ValueError as error:
                raise endpoint_error(error) from error

    botocore_session = get_session()
    # The nightly job recognizes an operator's calls by this user agent.
    user_agent_name, user_agent_version = OPERATOR_USER_AGENT.split("/")
    botocore_session.user_agent_name = user_agent_name
    botocore_session.user_agent_version = user_agent_version
    botocore_session.set_default_client_config(Config(**defaults))
    return SessionWithEndpointCheck(
        botocore_session=botocore_session, profile_name=profile, region_name=region
    )
