"""`python -m zuno_devnet up`: a fresh chain with the Uniswap v4 contracts and funded accounts, on 127.0.0.1."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from zuno.kernel.errors import Broken, Refused, ZunoError

from .artifacts import find_artifacts

_CONTRACTS = Path(__file__).resolve().parents[2] / "contracts" / "node_modules"


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit codes: 0 stopped by a signal, 2 usage, 3 refused, 4 unavailable, 5 broken, 130 Ctrl-C before it served."""
    try:
        serve_fresh_chain(_read_options(arguments))
    except ZunoError as error:
        print(f"zuno_devnet: {error}", file=sys.stderr)
        return 5 if isinstance(error, Broken) else 3 if isinstance(error, Refused) else 4
    except KeyboardInterrupt:
        return 130
    return 0


def serve_fresh_chain(options: argparse.Namespace) -> None:
    artifacts = find_artifacts(options.contracts)
    # py-evm takes a second to import: only after the contracts are known to be there.
    from .chain import ETHER, LocalChain
    from .deploy import deploy, v4_genesis
    from .keys import dev_key
    from .node import DevnetNode
    from .server import check_port, serve_until_signalled

    check_port(options.port)
    keys = [dev_key(f"account {number}") for number in range(options.accounts)]
    unlocked = {key.public_key.to_canonical_address(): key for key in keys}
    balances = dict.fromkeys(unlocked, options.balance * ETHER)
    # Deploying takes a second of the chain's time for each contract.
    started = int(time.time()) - 10 if options.timestamp is None else options.timestamp
    chain = LocalChain.create(v4_genesis(artifacts, balances=balances, timestamp=started, chain_id=options.chain_id))
    contracts = deploy(chain, artifacts).to_checksums()

    def show(url: str) -> None:
        rows = [f"Devnet at {url}, chain {chain.chain_id}, block {chain.head.number}; stop it with Ctrl-C.", ""]
        rows += [f"  {name:16} {address}" for name, address in contracts.items()]
        if keys:
            rows += ["", f"Accounts with {options.balance} ETH each; their keys are public, never fund them elsewhere:"]
            rows += [f"  {key.public_key.to_checksum_address()}  {key.to_hex()}" for key in keys]
        print("\n".join(rows), flush=True)

    serve_until_signalled(DevnetNode(chain, unlocked=unlocked), options.port, show)


def _read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m zuno_devnet", description=__doc__)
    up = parser.add_subparsers(required=True, metavar="up").add_parser("up", help="serve a fresh chain until Ctrl-C")
    whole = _whole_number
    up.add_argument("--port", type=whole(0, 65_535), default=8545, help="port on 127.0.0.1; 0 picks a free one")
    up.add_argument("--chain-id", type=whole(1, 2**53), default=31337, help="default 31337")
    up.add_argument("--accounts", type=whole(0, 1_000), default=10, help="funded test accounts; default 10")
    up.add_argument("--balance", type=whole(0, 10**9), default=10_000, help="ether of each account; default 10000")
    up.add_argument("--timestamp", type=whole(1, 2**40), help="of the first block, in seconds; default now")
    contracts = Path(os.environ.get("ZUNO_CONTRACTS_DIR") or _CONTRACTS)
    up.add_argument("--contracts", type=Path, default=contracts, help="node_modules with the contract packages")
    return parser.parse_args(arguments)


def _whole_number(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 20 and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} to {most}")
        return int(text)

    return read


if __name__ == "__main__":
    sys.exit(main())
