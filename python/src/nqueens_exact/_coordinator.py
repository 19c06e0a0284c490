"""A client of a coordinator."""

from __future__ import annotations

import json
from os import PathLike, fspath
from typing import Any

from . import _native


class Coordinator:
    """A coordinator of a campaign, whose status is read.

    :param address: ``host:port``; None for this machine and port 7878.
    :param data: the data directory of a coordinator on this machine, which has its address and an
        operator's certificate. Give either this or an address.
    :param token: a token for viewers or operators (``nqueens token create --role viewer``). It is
        needed once; the certificate is stored in ``credentials``.
    :param credentials: the directory of the certificate for a coordinator that uses TLS.
    :param insecure: connect without TLS to a coordinator on another machine.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        data: str | PathLike[str] | None = None,
        token: str | None = None,
        credentials: str | PathLike[str] | None = None,
        insecure: bool = False,
    ) -> None:
        if data is not None and (address, token, credentials, insecure) != (None, None, None, False):
            from ._errors import UsageError

            raise UsageError("data has the address and the certificate; omit the other arguments")
        self._client = _native.CoordinatorClient(
            address,
            None if data is None else fspath(data),
            token,
            None if credentials is None else fspath(credentials),
            bool(insecure),
        )

    def status(self, job: str = "") -> dict[str, Any]:
        """Returns the status of a job, given by the first digits of its hash, or of all jobs.

        The fields are those of ``nqueens status --json`` (docs/json.md): ``jobs``, ``proofs``,
        ``workers``, ``build`` and, if there is one, ``trouble``. Counts of solutions are decimal
        strings, and times are in seconds.
        """
        status: dict[str, Any] = json.loads(self._client.status(job))
        return status
