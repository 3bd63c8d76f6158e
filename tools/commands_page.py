"""Write docs/commands.md from the command tree: `make docs`. A test compares the page with what this would write."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from zuno.doors.cli.main import build_command
from zuno.lp.model.chains import CHAINS

PAGE = Path(__file__).parents[1] / "docs" / "commands.md"
EVERYWHERE = ("--home", "--json")

INTRODUCTION = """\
# Commands

The reference of every command; the [guides](guides/first-hour.md) show them at work. `make docs` writes this page from
the command tree, so `zuno COMMAND --help` says the same.

- **`--home DIR`** is the data directory: else `$ZUNO_HOME`, else `~/.zuno`. Every command takes it.
- **`--json`** prints one JSON document on stdout and nothing else there; a command that runs until it is stopped prints
  one a line. An error is `{"error": {"kind", "message"}}` on stdout and one sentence on stderr. [What the
  fields mean](json.md).
- **Exit codes**: 0 done · 2 usage · 3 refused · 4 unavailable · 5 broken · 70 a bug of ours · 130 Ctrl-C · 143 SIGTERM.
  A command that runs until it is stopped ends with 0 on either signal. [The runbook](runbook.md) has the cures.
- **`--chain`** is `sim` (the default while no RPC URL is set), `devnet`, CHAINS, or a
  chain id.
- **Times** are `90m`, `36h`, `7d` or `2w` ago, a date, an ISO time in UTC, or unix seconds.
- **Confirmations**: what moves money shows what it will do and asks for a word at the terminal. `--yes` skips the
  question on test networks and on paper, never with real money.
- A token marked `USDC?` (`"verified": false`) bears the name its own contract gives; it is never priced by that name.
- `zuno` alone opens the [shell](guides/first-hour.md#the-shell), which reads plain English and the commands below.
- `--version`, given to `zuno` alone, prints the version; `--install-completion` adds completion on Tab to your shell.
"""

EXAMPLES = {
    "agents": "zuno agents",
    "backup": "zuno backup /backups/zuno-{date}.zip --keep 14",
    "docs build": "zuno docs build --out site",
    "home move": "zuno home move /data/zuno",
    "home unlock": "zuno home unlock",
    "home usage": "zuno home usage",
    "restore": "zuno restore /backups/zuno-20261118T063000Z.zip --home /data/zuno",
    "alerts": "zuno alerts --all",
    "alerts ack": "zuno alerts ack alert_285e38a2a521",
    "alerts add": "zuno alerts add 1 --price-above 3400",
    "alerts remove": "zuno alerts remove rule_0d828dfe0ce6",
    "alerts snooze": "zuno alerts snooze alert_285e38a2a521 6h",
    "data check": "zuno data check --repair",
    "data collect": "zuno data collect --symbol BTCUSDT",
    "data download": "zuno data download BTCUSDT --from 2025-01-01 --to 2025-02-01",
    "data import": "zuno data import BTC_USDT-1h.csv --series candles/binance/BTCUSDT/1h",
    "data status": "zuno data status",
    "config check": "zuno config check",
    "config init": "zuno config init",
    "config show": "zuno config show",
    "data synth": "zuno data synth --seed 11",
    "demo": "zuno demo",
    "markets": "zuno markets --search SOL --kind perp",
    "devnet down": "zuno devnet down",
    "devnet move": "zuno devnet move --percent -6",
    "devnet status": "zuno devnet status",
    "devnet up": "zuno devnet up --background",
    "doctor": "zuno doctor --live",
    "export events": "zuno export events --year 2026 --currency EUR --out events.csv",
    "export ledger": "zuno export ledger --out ledger.csv",
    "export lp": "zuno export lp --out lp.csv",
    "export trades": "zuno export trades > trades.csv",
    "home compact": "zuno home compact --older 90d",
    "journal tail": "zuno journal tail -n 5",
    "journal upgrade": "zuno journal upgrade",
    "journal verify": "zuno journal verify --all",
    "glossary": "zuno glossary LVR",
    "lab ablate": "zuno lab ablate --data minutes/ --horizon 24",
    "lab calibration": "zuno lab calibration --as-of 7d",
    "lab invariance": "zuno lab invariance --moments 60 --seeds 1-4",
    "lab lookahead": "zuno lab lookahead --moments 60 --seeds 1-4",
    "lab lp": "zuno lab lp --data minutes/ --arms hold,passive,reset,fee-cover,debate",
    "lab memory": "zuno lab memory --seeds 1-6",
    "lab noedge": "zuno lab noedge --worlds 1000",
    "lab reports": "zuno lab reports",
    "lab strategies": "zuno lab strategies --data history/ --markets BTCUSDT,ETHUSDT --from 2018-01-01",
    "lab study": "zuno lab study --moments 400 --seeds 1-10",
    "lab sweep": "zuno lab sweep --data minutes/ --ranges 1000",
    "lab trade": "zuno lab trade --data history/ --arms debate,hold,sma,random",
    "lab vetoes": "zuno lab vetoes --as-of 7d",
    "logs": "zuno logs --lines 20 --level warning",
    "serve": "zuno serve --without telegram --page '--port 9000'",
    "status": "zuno status",
    "lp add": 'zuno lp add 1 --amount "0.5 WETH"',
    "lp close": "zuno lp close 1",
    "lp collect": "zuno lp collect --all",
    "lp compound": "zuno lp compound 1",
    "lp inspect": "zuno lp inspect 1",
    "lp mandate grant": "zuno lp mandate grant --position 1 --exit-below 2800 --to token1 --for 7d",
    "lp mandate revoke": "zuno lp mandate revoke",
    "lp mandate show": "zuno lp mandate show",
    "lp pause": "zuno lp pause",
    "lp pnl": "zuno lp pnl 1 --since 7d",
    "lp pool": "zuno lp pool ETH/USDC 0.3%",
    "lp pools": "zuno lp pools ETH/USDC --rank",
    "lp portfolio": "zuno lp portfolio --window 7d",
    "lp positions": "zuno lp positions --only risky",
    "lp recommend create": 'zuno lp recommend create "2 ETH passively"',
    "lp recommend rebalance": "zuno lp recommend rebalance 1 --profile conservative",
    "lp remove": "zuno lp remove 1 --percent 50",
    "lp resume": "zuno lp resume",
    "lp revoke": "zuno lp revoke",
    "lp whatif": "zuno lp whatif 1 --price -20%",
    "mcp": "zuno mcp",
    "memory forget": "zuno memory forget pm_527abf441fca6b06c5586178",
    "memory lessons": "zuno memory lessons",
    "memory list": "zuno memory list --symbol BTCUSDT",
    "memory search": 'zuno memory search "BTC long stopped out"',
    "memory show": "zuno memory show pm_527abf441fca6b06c5586178",
    "mesh down": "zuno mesh down",
    "mesh init": "zuno mesh init",
    "mesh join": "zuno mesh join req_a91dbb8c2d8f5f8d",
    "mesh ping": "zuno mesh ping",
    "mesh status": "zuno mesh status",
    "mesh up": "zuno mesh up --transport iroh",
    "monitor once": "zuno monitor once",
    "monitor run": "zuno monitor run --json",
    "parse": 'zuno parse "rebalance position 1 safely"',
    "peer": "zuno peer scout",
    "plan apply": "zuno plan apply plan_69a0bc6b24c3",
    "plan approve": "zuno plan approve plan_69a0bc6b24c3",
    "plan check": "zuno plan check batch.json --plan plan_69a0bc6b24c3",
    "plan cancel": "zuno plan cancel plan_69a0bc6b24c3",
    "plan diff": "zuno plan diff plan_69a0bc6b24c3 plan_798248b26a74",
    "plan list": "zuno plan list --waiting",
    "plan show": "zuno plan show plan_69a0bc6b24c3",
    "plan simulate": "zuno plan simulate plan_69a0bc6b24c3",
    "plan status": "zuno plan status plan_69a0bc6b24c3",
    "replay": "zuno replay plan_69a0bc6b24c3",
    "sim move": "zuno sim move --percent -6",
    "sim reset": "zuno sim reset --seed 1",
    "strategy add": "zuno strategy add fifty --file fifty.py",
    "strategy list": "zuno strategy list",
    "strategy remove": "zuno strategy remove fifty",
    "strategy shadow": "zuno strategy shadow fifty",
    "strategy show": "zuno strategy show trend",
    "strategy targets": "zuno strategy targets --as-of 7d",
    "telegram run": "zuno telegram run",
    "telegram setup": "zuno telegram setup",
    "trade adopt": "zuno trade adopt --account live",
    "trade balance": "zuno trade balance",
    "trade book add": "zuno trade book add BTCUSDT long --margin 500 --leverage 2 --hold 5d",
    "trade book close": "zuno trade book close BTCUSDT",
    "trade book lp": "zuno trade book lp ETHUSDT 1.5",
    "trade calibration": "zuno trade calibration",
    "trade cancel": "zuno trade cancel zn9f331ae1185bc81dfe2127d1f98c4b",
    "trade chart": "zuno trade chart BTCUSDT --out btc.png",
    "trade close": "zuno trade close BTCUSDT",
    "trade evaluate": "zuno trade evaluate",
    "trade features": "zuno trade features BTCUSDT --as-of 36h",
    "trade fills": "zuno trade fills --lines 20",
    "trade kill": "zuno trade kill --account live",
    "trade ledger": "zuno trade ledger",
    "trade locks": "zuno trade locks",
    "trade sleeves": "zuno trade sleeves",
    "trade mandate grant": "zuno trade mandate grant --symbol BTCUSDT --margin-per-trade 100 --for 7d",
    "trade mandate revoke": "zuno trade mandate revoke",
    "trade mandate show": "zuno trade mandate show",
    "trade orders": "zuno trade orders --all",
    "trade pause": "zuno trade pause",
    "trade performance": "zuno trade performance --out equity.png",
    "trade positions": "zuno trade positions",
    "trade profit": "zuno trade profit --by month",
    "trade reconcile": "zuno trade reconcile --account live",
    "trade resume": "zuno trade resume",
    "trade run": "zuno trade run BTCUSDT --mode swing",
    "trade runs": "zuno trade runs",
    "trade set": "zuno trade set trd_c80788d8d84a --stop 88000",
    "trade start": "zuno trade start --speed max --from 24h",
    "trade status": "zuno trade status --account live",
    "trade stop": "zuno trade stop",
    "trade trades": "zuno trade trades",
    "trade transfer": "zuno trade transfer debate trend 500",
    "trade unlock": "zuno trade unlock kill_switch",
    "trade vetoes": "zuno trade vetoes --as-of 7d",
    "trade why": "zuno trade why run_c9ba209348920aa4",
    "version": "zuno version",
    "wallet allowances": "zuno wallet allowances",
    "wallet balance": "zuno wallet balance --chain sim",
    "wallet create": "zuno wallet create",
    "wallet import": "zuno wallet import keystore.json",
    "wallet show": "zuno wallet show",
    "web": "zuno web --port 8420",
    "web allow": "zuno web allow --for 30m",
    "web factor add": "zuno web factor add totp phone",
    "web factor list": "zuno web factor list",
    "web factor remove": "zuno web factor remove phone",
    "web link": "zuno web link --scope look",
    "web sessions": "zuno web sessions --end all",
    "web token create": "zuno web token create grafana --scope look",
    "web token list": "zuno web token list",
    "web token revoke": "zuno web token revoke grafana",
    "why": "zuno why plan_69a0bc6b24c3",
}
"""One line for each command, which must parse. Ids are made up but have the form of real ones."""


def render_page() -> str:
    root: Any = build_command()
    lines = [INTRODUCTION.replace("CHAINS", ", ".join(f"`{chain.name}`" for chain in CHAINS))]
    lines.append(" · ".join(f"[{name}](#zuno-{name})" for name in sorted(root.commands)) + "\n")
    for name in sorted(root.commands):
        lines += _render(name, root.commands[name])
    return "\n".join(lines)


def _render(name: str, command: Any) -> Iterator[str]:
    inner = getattr(command, "commands", {})
    yield f"{'##' if ' ' not in name else '###'} zuno {name}\n"
    yield inspect.cleandoc(command.help).replace("\n", " ") + "\n"
    shown = [param for param in command.params if not _is_left_out(param)]
    if shown:
        yield "| | default | |\n|---|---|---|"
        yield from map(_render_parameter, shown)
        yield ""
    if runs_alone(command):
        if not any("--json" in param.opts for param in command.params):
            yield "Takes no `--json`.\n"
        yield f"```sh\n{EXAMPLES[name]}\n```\n"
    for child in sorted(inner):
        yield from _render(f"{name} {child}", inner[child])


def runs_alone(command: Any) -> bool:
    """A group whose callback only prints its help is no command of its own."""
    return not hasattr(command, "commands") or command.callback.__name__ != "help_alone"


def _is_left_out(param: Any) -> bool:
    return getattr(param, "hidden", False) or bool(set(EVERYWHERE) & set(param.opts))


def _render_parameter(param: Any) -> str:
    is_argument = param.param_type_name == "argument"
    is_flag = getattr(param, "is_flag", False)
    metavar = "" if is_flag else param.metavar or param.name.upper()
    name = metavar.strip("[]") if is_argument else f"{', '.join(param.opts)} {metavar}".strip()
    if param.required:
        default = "required"
    else:
        default = "" if is_flag or param.default in (None, "", ()) else f"`{param.default}`"
    return f"| `{_escape(name)}` | {_escape(default)} | {_escape(param.help or '')} |"


def _escape(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(render_page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE.name} is written\n")
