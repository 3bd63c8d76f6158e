"""Where the page is reached from outside: its public address, and the proxies whose word about a client counts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from zuno.kernel.errors import UsageError

LOOPBACK_NAMES: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
LOOPBACK_PROXIES: Final = ("127.0.0.0/8", "::1")
_HIGHEST_PORT: Final = 65_535
_NAME: Final = r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?"
_URL: Final = rf"(https?)://({_NAME}|\[[0-9a-fA-F:.]{{2,45}}\])(?::([0-9]{{1,5}}))?((?:/[A-Za-z0-9_-]+)*)/?"
_WITH_PORT: Final = r"(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+))(?::[0-9]{1,5})?"


@dataclass(frozen=True, slots=True)
class PublicSite:
    scheme: str
    name: str
    """The host without its port, in small letters."""
    origin: str
    """As a browser writes it: the scheme's own port is left out."""
    base: str
    """The path that everything is under, as `/zuno`; empty: the root."""
    proxies: tuple[IPv4Network | IPv6Network, ...]

    def trusts(self, address: str) -> bool:
        parsed = parse_address(address)
        return parsed is not None and any(parsed in network for network in self.proxies)

    def find_client(self, peer: str, forwarded: str) -> str:
        """The client of a request that came from `peer`. Of `X-Forwarded-For` only what named proxies added counts:
        the first address from the right that is no proxy. A client can write whatever it likes to the left of it."""
        client = peer
        for part in reversed(forwarded.split(",")):
            parsed = parse_address(part.strip())
            if parsed is None or not self.trusts(client):
                break
            client = str(parsed)
        return client


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """With or without a port; an address of IPv4 that is written as IPv6 is the one of IPv4."""
    match = re.fullmatch(_WITH_PORT, text)
    try:
        parsed = ip_address(text if match is None else match[1] or match[2])
    except ValueError:
        return None
    return getattr(parsed, "ipv4_mapped", None) or parsed


def parse_public_url(text: str, proxies: Sequence[str] = ()) -> PublicSite:
    """`UsageError` for anything but https://HOST[:PORT][/BASE]; plain http only on this machine itself."""
    match = re.fullmatch(_URL, text.strip())  # never echoed: it may hold a password
    if match is None or not 0 < int(match[3] or 1) <= _HIGHEST_PORT:
        raise UsageError("A public URL is https://HOST[:PORT][/BASE], without a user, a query or a fragment.")
    scheme, name, port, base = match[1], match[2].lower(), match[3], match[4]
    if scheme == "http" and name not in LOOPBACK_NAMES:
        raise UsageError("A public URL without TLS gives logins away; use https://, with a proxy that ends the TLS.")
    shown = f":{int(port)}" if port and int(port) != {"https": 443, "http": 80}[scheme] else ""
    return PublicSite(scheme, name, f"{scheme}://{name}{shown}", base, parse_proxies(proxies or LOOPBACK_PROXIES))


def parse_proxies(texts: Sequence[str]) -> tuple[IPv4Network | IPv6Network, ...]:
    """`UsageError` for what is neither an address nor a network."""
    try:
        return tuple(ip_network(text) for text in texts)
    except ValueError:
        raise UsageError("Expected IP addresses or networks, as 10.0.0.2 or 10.0.0.0/24, comma-separated.") from None
