"""What a client is told about the broker that serves its topic: addresses, of the listener it asked for if it did.

Source: BrokerLookupData.toLookupResult (`docs/pulsar/load-managers.md`).
"""

from __future__ import annotations

from lookup.errors import NotFoundError
from lookup.model.broker import BrokerLookupData
from lookup.model.request import LookupOptions, LookupResult

__all__ = ["RESULT_TYPE", "lookup_result"]

#: Answers name a broker's addresses; other types of Pulsar's are of proxies and redirects.
RESULT_TYPE = "BrokerUrl"


def lookup_result(broker: str, data: BrokerLookupData, options: LookupOptions) -> LookupResult:
    """Return the addresses of a broker as a client with these options gets them.

    A listener replaces the binary addresses only, and one it does not have is told as absent; web addresses are always
    the broker's own.

    Raises:
        NotFoundError: where the broker does not have the listener.
    """
    binary = data.pulsar_service_url, data.pulsar_service_url_tls
    name = options.advertised_listener_name
    if name is not None and name.strip():
        if name not in data.advertised_listeners:
            known = ", ".join(sorted(data.advertised_listeners)) or "none"
            raise NotFoundError(f"broker {broker} does not have a listener {name!r}; it has {known}")
        listener = data.advertised_listeners[name]
        binary = listener.broker_service_url, listener.broker_service_url_tls
    return LookupResult(broker, *binary, data.web_service_url, data.web_service_url_tls)
