"""The local chain through the real command line: the real contracts tell the same story as our own pools."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest


def numbers(position: dict[str, Any]) -> dict[str, Any]:
    """A position without what names its chain, what gas comes into, and what hangs on the moments of its blocks."""
    apart = {"chain", "market", "poolState", "timestamp"}
    own = {"result", "resultShare", "againstHolding", "feeApr", "netApr", "lvr7d"}
    summary = {name: value for name, value in position["summary"].items() if name not in own}
    return {name: value for name, value in position.items() if name not in apart} | {"summary": summary}


def test_the_real_contracts_and_our_pools_hold_the_same_positions(devnet: Any, zuno: Any) -> None:
    real = devnet("lp", "positions", "--chain", "devnet", "--json")
    ours = zuno("lp", "positions", "--chain", "sim", "--json")
    assert real.code == 0, real.err
    assert real.err == ""
    assert [numbers(one) for one in real.document["positions"]] == [numbers(one) for one in ours.document["positions"]]
    assert real.document["complete"] is True
    assert real.document["block"] == ours.document["block"]


def test_a_move_is_the_same_move_on_both_chains(devnet: Any, zuno: Any) -> None:
    real, ours = (run(*words) for run, words in _both(devnet, zuno, "move", "--percent", "-6", "--json"))
    assert real.code == ours.code == 0
    assert real.document["pools"] == ours.document["pools"]
    assert real.document["referenceAfter"] == ours.document["referenceAfter"]
    seen = devnet("lp", "inspect", "1", "--chain", "devnet", "--json").document
    assert seen["inRange"] is False
    assert numbers(seen) == numbers(zuno("lp", "inspect", "1", "--json").document)
    assert seen["market"]["referencePrice"]["source"] == "devnet reference"
    assert seen["market"]["referencePrice"]["value"] == real.document["referenceAfter"]
    assert seen["market"]["realizedVol"]["source"] == "pool swaps"
    assert 350 < float(seen["market"]["realizedVol"]["value"]) < 600


def _both(devnet: Any, zuno: Any, *words: str) -> list[tuple[Any, tuple[str, ...]]]:
    return [(devnet, ("devnet", *words)), (zuno, ("sim", *words))]


@pytest.mark.soak(every=2)
@pytest.mark.parametrize("window", [[], ["--since", "2026-01-26T12:30"]], ids=["from the mint", "from a moment"])
@pytest.mark.parametrize("position", ["1", "2"])
def test_attribution_is_exact_on_the_real_contracts(devnet: Any, zuno: Any, position: str, window: list[str]) -> None:
    devnet("devnet", "move", "--percent", "4")
    zuno("sim", "move", "--percent", "4")
    real = devnet("lp", "pnl", position, *window, "--chain", "devnet", "--json")
    assert real.code == 0, real.err
    pnl, ours = real.document, zuno("lp", "pnl", position, *window, "--json").document
    assert pnl["exact"] is True, pnl["notes"]
    for terms in ("inToken0", "inToken1"):
        for term in ("navStart", "navEnd", "fees", "priceEffect", "divergenceLoss", "swapCost", "residual"):
            assert pnl[terms][term] == ours[terms][term], term
    assert (pnl["fees0"], pnl["fees1"]) == (ours["fees0"], ours["fees1"])
    assert float(pnl["inToken1"]["lvr"]) == pytest.approx(float(ours["inToken1"]["lvr"]), rel=1e-6)


def test_an_addition_takes_what_was_named_or_shown_and_no_more(devnet: Any) -> None:
    """Below its range position 1 takes WETH alone: dollars that are named draw nothing from the wallet."""
    rich = {"ZUNO_SPEND_USD_PER_PLAN": "100000000", "ZUNO_SPEND_USD_PER_DAY": "100000000"}

    def balances() -> dict[str, int]:
        told = devnet("wallet", "balance", "--chain", "devnet", "--json").document["balances"]
        return {line["token"]["symbol"]: int(line["amount"]) for line in told}

    made = devnet("lp", "add", "1", "--amount", "100 USDC", "--chain", "devnet", "--json")
    shown = {line["symbol"]: (int(line["amount"]), line["named"]) for line in made.document["capital"]}
    assert shown["USDC"] == (100 * 10**6, True)
    assert 0 < shown["WETH"][0] < 10**18
    assert shown["WETH"][1] is False
    assert devnet("plan", "status", made.document["planId"], "--json").document["capital"] == made.document["capital"]
    devnet("devnet", "move", "--percent", "-2")
    assert devnet("plan", "approve", made.document["planId"], "--yes", **rich).code == 3
    before = balances()
    refused = devnet("lp", "add", "1", "--amount", "100 USDC", "--chain", "devnet", **rich)
    assert refused.code == 3
    assert "name WETH alone" in refused.err
    made = devnet("lp", "add", "1", "--amount", "2 WETH", "--chain", "devnet", "--json")
    assert [(line["symbol"], line["amount"]) for line in made.document["capital"]] == [("WETH", str(2 * 10**18))]
    assert devnet("plan", "approve", made.document["planId"], "--yes", **rich).code == 0
    applied = devnet("plan", "apply", made.document["planId"], "--yes", "--json", **rich)
    assert applied.code == 0, applied.err
    after = balances()
    assert 0 < before["WETH"] - after["WETH"] <= 2 * 10**18
    assert after["USDC"] >= before["USDC"]


def test_pools_are_found_on_the_chain_itself(devnet: Any, zuno: Any) -> None:
    real = devnet("lp", "pools", "--chain", "devnet", "--json").document
    ours = zuno("lp", "pools", "--json").document
    by_id = {pool["id"]: pool for pool in real["pools"]}
    for pool in ours["pools"]:
        assert {**by_id[pool["id"]], "chain": ""} == {**pool, "chain": ""}
    assert len(by_id) == 3


def test_the_life_of_a_node(apart: Any, tmp_path: Path) -> None:
    home = tmp_path / "devnet-home"
    assert apart("devnet", "up", "--background", "--port", "0", "--json").code == 0
    record = json.loads((home / "devnet.json").read_text())
    assert stat.S_IMODE((home / "devnet.json").stat().st_mode) == 0o600
    assert {"poolManager", "positionManager", "quoter", "universalRouter", "permit2", "weth", "usdc"} <= set(
        record["contracts"]
    )
    assert len(record["wallet"]["privateKey"]) == 66
    again = apart("devnet", "up", "--background", "--json")
    assert again.code == 0
    assert again.document["pid"] == record["pid"]
    assert "already" in again.document["note"]
    # Pull the plug: the file it left must not look like a node.
    os.kill(record["pid"], signal.SIGKILL)
    give_up = time.monotonic() + 10
    while apart("devnet", "status", "--json").document.get("running", True):  # while it dies it may not answer at all
        assert time.monotonic() < give_up
    refused = apart("lp", "positions", "--chain", "devnet", "--json")
    assert refused.code == 4
    assert "zuno devnet up" in refused.document["error"]["message"]
    fresh = apart("devnet", "up", "--background", "--port", "0", "--json")
    assert fresh.code == 0
    assert fresh.document["pid"] != record["pid"]
    down = apart("devnet", "down", "--json")
    assert down.code == 0
    assert down.document["running"] is False
    assert not (home / "devnet.json").exists()


def test_a_taken_port_is_told(apart: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ran = apart("devnet", "up", "--background", "--port", str(taken.getsockname()[1]), "--json")
    assert ran.code == 4
    assert "taken" in ran.document["error"]["message"]


def test_an_rpc_of_another_chain_is_refused_by_name(devnet: Any) -> None:
    url = devnet("devnet", "status", "--json").document["url"]
    ran = devnet("lp", "pools", "--chain", "sepolia", "--json", ZUNO_SEPOLIA_RPC_URL=f"{url}/v2/SECRETKEY")
    assert ran.code == 4
    message = ran.document["error"]["message"]
    assert "31337" in message
    assert "11155111" in message
    assert "ZUNO_SEPOLIA_RPC_URL" in message
    assert "SECRETKEY" not in ran.out + ran.err


def test_an_rpc_that_is_down_is_told_without_its_key(zuno: Any) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/SECRETKEY"
        ran = zuno("lp", "pools", "--chain", "base", "--json", ZUNO_BASE_RPC_URL=url)
    assert ran.code == 4
    assert ran.document["error"]["kind"] == "unavailable"
    assert "SECRETKEY" not in ran.out + ran.err


def test_the_reference_follows_the_chain_back(devnet: Any) -> None:
    status = devnet("devnet", "status", "--json").document
    assert status["running"] is True

    def rpc(method: str, *params: object) -> Any:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        request = urllib.request.Request(status["url"], body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())["result"]

    before = rpc("zuno_reference")
    snapshot = rpc("evm_snapshot")
    devnet("devnet", "move", "--percent", "2")
    assert rpc("zuno_reference") != before
    rpc("evm_revert", snapshot)
    assert rpc("zuno_reference") == before
    moved = devnet("devnet", "move", "--percent", "0", "--json").document
    assert moved["referenceBefore"] == moved["referenceAfter"]


def test_a_move_that_fails_is_broken_books(devnet: Any) -> None:
    """The trader gives its permission to pay with WETH away; two of three pools cannot be pushed down any more."""
    from zuno.adapters.chain.world import SWAP_ROUTER, WETH
    from zuno.lp.plan import calldata
    from zuno_devnet.keys import dev_address

    url = devnet("devnet", "status", "--json").document["url"]
    data = calldata.call("approve(address,uint256)", SWAP_ROUTER, 0)
    wish = {"from": "0x" + dev_address("trader").hex(), "to": WETH.address, "data": "0x" + data.hex()}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "eth_sendTransaction", "params": [wish]}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    assert "result" in json.loads(urllib.request.urlopen(request, timeout=30).read())
    pools = devnet("lp", "pools", "--chain", "devnet", "--json").document["pools"]
    ran = devnet("devnet", "move", "--percent", "-3", "--json")
    assert ran.code == 5
    assert ran.document["error"]["kind"] == "broken"
    assert devnet("lp", "pools", "--chain", "devnet", "--json").document["pools"] == pools


@pytest.mark.soak
def test_a_second_start_waits_for_the_first(apart: Any) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as both:
        runs = list(both.map(lambda _: apart("devnet", "up", "--background", "--port", "0", "--json"), range(2)))
    assert [run.code for run in runs] == [0, 0]
    assert len({run.document["pid"] for run in runs}) == 1


def test_a_plan_is_carried_out_on_the_real_contracts(devnet: Any) -> None:
    """From a recommendation to a position whose range is the one asked for; and once only."""
    plan = devnet("lp", "recommend", "rebalance", "1", "--chain", "devnet", "--json").document
    plan_id, wanted = plan["planId"], plan["recommended"]
    assert wanted["kind"] in ("widen", "tighten", "shift"), "the edge position must move"
    tried = devnet("plan", "simulate", plan_id, "--json")
    assert tried.code == 0, tried.err
    assert tried.document["ok"] is True
    approved = devnet("plan", "approve", plan_id, "--yes", "--json")
    assert approved.code == 0, approved.err
    applied = devnet("plan", "apply", plan_id, "--yes", "--json")
    assert applied.code == 0, applied.err
    done = applied.document
    assert done["state"] == "confirmed"
    assert all(step["state"] == "final" and step["gasUsed"] > 21_000 for step in done["steps"])
    shown = devnet("lp", "inspect", done["newPositionId"], "--chain", "devnet", "--json").document
    assert (shown["tickLower"], shown["tickUpper"]) == (wanted["tickLower"], wanted["tickUpper"])
    assert abs(int(shown["amount0"]) / int(wanted["amount0"]) - 1) < 0.01, "as much as the card promised"
    assert done["outcome"]["exact"] is True
    again = devnet("plan", "apply", plan_id, "--yes", "--json")
    assert again.code == 3
    assert devnet("journal", "verify").code == 0


def test_a_move_between_approve_and_apply_is_refused_with_the_bound(devnet: Any) -> None:
    plan_id = devnet("lp", "recommend", "rebalance", "1", "--chain", "devnet", "--json").document["planId"]
    assert devnet("plan", "approve", plan_id, "--yes", "--json").code == 0
    assert devnet("devnet", "move", "--percent", "-6").code == 0
    refused = devnet("plan", "apply", plan_id, "--yes", "--json")
    assert refused.code == 3
    assert re.search(r"\btick -?\d+\b.*\b50\b", refused.document["error"]["message"])
    assert devnet("lp", "inspect", "1", "--chain", "devnet").code == 0


@pytest.mark.soak
def test_a_devnet_that_stood_still_is_woken_before_a_plan_is_made(devnet: Any, devnet_home: Path) -> None:
    """A deadline counted from the head of a quiet quarter of an hour ago would be over already."""
    url = json.loads((devnet_home / "devnet.json").read_text())["url"]
    made = devnet("lp", "collect", "2", "--chain", "devnet", "--json").document["planId"]
    rpc(url, "evm_increaseTime", "0x3e8")
    assert devnet("plan", "approve", made, "--yes", "--json").code == 0
    applied = devnet("plan", "apply", made, "--yes", "--json")
    assert applied.code == 0, applied.err
    late = devnet("lp", "collect", "1", "--chain", "devnet", "--json").document["planId"]
    assert devnet("plan", "approve", late, "--yes", "--json").code == 0
    rpc(url, "evm_increaseTime", "0x3e8")
    refused = devnet("plan", "apply", late, "--yes", "--json")
    assert refused.code == 3
    assert "expired" in refused.err


def rpc(url: str, method: str, *params: object) -> Any:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())["result"]
