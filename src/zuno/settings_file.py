"""`zuno.toml`, and lists of wallets. Every fault is named with its line; what may be a secret is never repeated."""

import dataclasses
import json
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from zuno.kernel.accounts import RESERVED_ACCOUNTS
from zuno.kernel.errors import UsageError
from zuno.kernel.text import plain_text
from zuno.markets.venues import Venue, parse_venue

FILE: Final = "zuno.toml"
ACCOUNTS: Final = "accounts"
ACCOUNT_KEYS: Final[Mapping[str, str]] = {
    "venues": "venues of one company: binance, binance-spot, bybit, okx-spot, hyperliquid …",
    "key": "API key, at Hyperliquid the address of the account; never written here",
    "secret": "its secret, at Hyperliquid the key of an agent",
    "passphrase": "its passphrase, at OKX",
    "sub_account": "label of the sub-account that the keys are of",
    "demo": "true: demo trading, no real money",
    "url": "base URL of the signed API, for tests",
}
"""What a table `[accounts.NAME]` may hold."""
_ACCOUNT_SECRETS: Final = ("key", "secret", "passphrase")
_MOST_BYTES: Final = 2_000_000
_MOST_SECRET_BYTES: Final = 65_536
# Patterns are compiled where they are used: most homes have no file, and every command reads this module.
_TOKEN: Final = r'(?s)"""(?:\\.|[^\\])*?"""|\'\'\'.*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}\n]'
_KEY: Final = r'(?:"[^"\n]*"|\'[^\'\n]*\'|[^="\'\n])+(?==)'
_PLACE: Final = r" \(at (?:line (\d+), column \d+|end of document)\)"
_OPEN_URL: Final = r"[a-z]+://[A-Za-z0-9.:\[\]-]+(?:/[A-Za-z0-9._~-]{0,12})*"
"""A URL without a user, a query or a long part: what is longer may be a key."""
_LOGIN: Final = r"://(?:[^/?#\s]*@|\S*\?)"
_WALLET: Final = r"(0x[0-9a-fA-F]{40})(?:[\s,;]+(.*))?"
_LONGEST_LABEL: Final = 40
_ACCOUNT_NAME: Final = r"[A-Za-z0-9_-]{1,32}"


@dataclass(frozen=True, slots=True)
class Fault:
    line: int
    """0: it is about the whole file."""
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}" if self.line else self.text


@dataclass(frozen=True, slots=True)
class FileField:
    """A setting as the file has it: `[table] key`. Its own name stands for the key as well, also above all tables."""

    name: str
    table: str
    key: str
    secret: bool
    path: bool
    variable: str
    meaning: str
    default: Any

    def __str__(self) -> str:
        return f"[{self.table}] {self.key}"


@dataclass(frozen=True, slots=True)
class FileReading:
    """What `zuno.toml` says, by the names of settings."""

    path: Path
    found: bool
    values: Mapping[str, str]
    """Written as the environment would; those that could be read."""
    lines: Mapping[str, int]
    faults: tuple[Fault, ...] = ()
    notes: tuple[Fault, ...] = ()
    """What is worth knowing and stops nothing."""

    def require_faultless(self) -> None:
        """`UsageError` names the first fault, and how many more there are."""
        if self.faults:
            more = f" and {len(self.faults) - 1} more" if len(self.faults) > 1 else ""
            raise UsageError(
                f"{self.path} cannot be used: {self.faults[0]}{more}; `zuno config check` lists everything."
            )


def read_settings_file(
    path: Path, list_fields: Callable[[], Mapping[str, FileField]], environment: Mapping[str, str]
) -> FileReading:
    """The settings of a file, and everything that is wrong with it; nothing where there is no file."""
    try:
        text = _read_text(path, _MOST_BYTES)
    except UsageError as error:
        return FileReading(path, True, {}, {}, (Fault(0, str(error)),))
    if text is None:
        return FileReading(path, False, {}, {})
    import tomllib  # where there is a file

    fields = list_fields()
    values, lines, faults, notes = dict[str, str](), dict[str, int](), list[Fault](), list[Fault]()
    accounts: dict[str, dict[str, str]] = {}
    for line, keys, value in _split(text, faults):
        if keys[0] == ACCOUNTS and len(keys) == 3 and keys[2] in ACCOUNT_KEYS:
            lines.setdefault(ACCOUNTS, line)
            secret, default = keys[2] in _ACCOUNT_SECRETS, () if keys[2] == "venues" else ""
            named = FileField(keys[2], f"{ACCOUNTS}.{plain_text(keys[1], 40)}", keys[2], secret, False, "", "", default)
            try:
                accounts.setdefault(keys[1], {})[keys[2]] = _to_text(named, value, environment, line, notes)
            except UsageError as error:
                faults.append(Fault(line, f"{named}: {error}"))
            continue
        field = _find_field(fields, keys)
        if field is None:
            faults.append(Fault(line, f"{_show(keys)} is not a setting of Zuno{_suggest(fields, keys)}"))
        elif field.name == ACCOUNTS:
            faults.append(Fault(line, f"an account is a table [{ACCOUNTS}.NAME] with {', '.join(ACCOUNT_KEYS)}"))
        elif field.name in lines:
            faults.append(Fault(line, f"{field} is set twice, first in line {lines[field.name]}"))
        else:
            lines[field.name] = line
            try:
                if setting := _to_text(field, value, environment, line, notes):
                    values[field.name] = setting
            except UsageError as error:
                faults.append(Fault(line, f"{field}: {error}"))
    if accounts:
        values[ACCOUNTS] = json.dumps(accounts)
    if not faults:
        try:
            tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            faults.append(_syntax_fault(error, 1))
    return FileReading(path, True, values, lines, tuple(faults), tuple(notes))


def _read_text(path: Path, most: int) -> str | None:
    """A small file of text; None where there is none, or its folder cannot be looked into."""
    try:
        if not path.is_symlink() and not path.exists():
            return None
    except PermissionError:
        return None
    except OSError:
        pass  # said by the next look
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise UsageError(f"{path} is not a file")
        if status.st_size > most:
            raise UsageError(f"{path} is larger than {most:,} bytes")
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror})") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path} is not UTF-8, first in line {line}") from None


def _split(text: str, faults: list[Fault]) -> Iterator[tuple[int, tuple[str, ...], Any]]:
    """Every assignment with its line and its keys, the table's first. A line that is no TOML hides no other."""
    import tomllib

    table: tuple[str, ...] = ()
    for line, statement in _split_statements(text.replace("\r\n", "\n")):
        try:
            parsed = tomllib.loads(statement, parse_float=Decimal)
            heading = statement.lstrip().startswith("[")
            key = re.match(_KEY, statement)
            named = parsed if heading else tomllib.loads(f"{key[0]}= 0") if key else {}
        except (ValueError, ArithmeticError, RecursionError) as error:  # also a number of endless digits
            faults.append(_syntax_fault(error, line))
            continue
        keys: tuple[str, ...] = ()
        while isinstance(named, dict) and named:
            ((part, named),) = named.items()
            keys, parsed = (*keys, part), parsed[part]
        if heading and isinstance(parsed, list):
            faults.append(Fault(line, f"{_show(keys)} is a table, in single brackets"))
        elif heading:
            table = keys
        elif keys:
            yield line, (*table, *keys), parsed


def _split_statements(text: str) -> Iterator[tuple[int, str]]:
    depth, start, line = 0, 0, 1
    for token in re.finditer(_TOKEN, f"{text}\n"):
        sign = token[0]
        if sign in ("[", "{"):
            depth += 1
        elif sign in ("]", "}"):
            depth -= 1
        elif sign == "\n" and depth <= 0:
            yield line, text[start : token.start()]
            line += text.count("\n", start, token.end())
            start, depth = token.end(), 0
    if text[start:].strip():
        yield line, text[start:]


def _syntax_fault(error: Exception, line: int) -> Fault:
    if isinstance(error, RecursionError):
        return Fault(line, "nested too deeply")
    place = re.search(_PLACE, str(error))
    if place is None:
        return Fault(line, "a number out of range")
    within = int(place[1]) - 1 if place[1] else 0
    return Fault(line + within, f"no TOML: {re.sub(_PLACE, '', str(error)).lower()}")


def _find_field(fields: Mapping[str, FileField], keys: tuple[str, ...]) -> FileField | None:
    table, key = keys if len(keys) == 2 else ("", keys[-1]) if len(keys) == 1 else ("", "")
    key = key.upper() if table == "routes" else key  # named by the words of a ruling, which are in capitals
    named = fields.get(key)
    if named is not None and table in ("", named.table):
        return named
    return next((field for field in fields.values() if (field.table, field.key) == (table, key)), None)


def _suggest(fields: Mapping[str, FileField], keys: tuple[str, ...]) -> str:
    """The same key of another table, else the nearest name."""
    from difflib import get_close_matches  # only on the way to an error

    if keys[0] == ACCOUNTS and len(keys) == 3:
        return f"; an account has {', '.join(ACCOUNT_KEYS)}"
    key, wanted = keys[-1], ".".join(keys)
    names = {f"{field.table}.{field.key}": field for field in fields.values()}
    same = [field for field in fields.values() if key in (field.key, field.name)]
    near = same or [names[name] for name in get_close_matches(wanted, names, 1)]
    by_name = near or [fields[name] for name in get_close_matches(key, fields, 1)]
    if wanted in ("home", "general.home"):
        return "; the home is chosen by --home or ZUNO_HOME"
    return f"; did you mean {by_name[0]}?" if by_name else ""


def _show(keys: tuple[str, ...]) -> str:
    *tables, key = (plain_text(key, 40) for key in keys)
    return f"[{'.'.join(tables)}] {key}" if tables else key


def _to_text(field: FileField, value: Any, environment: Mapping[str, str], line: int, notes: list[Fault]) -> str:
    """A value as the environment would have it. `UsageError` says what is wrong, and never the value of a secret."""
    if isinstance(value, list) and isinstance(field.default, tuple | dict):
        return ",".join(filter(None, (_to_text(field, part, environment, line, notes) for part in value)))
    if isinstance(value, dict):
        return _read_secret(field, value, environment, line, notes)
    if not isinstance(value, str | int | Decimal):
        raise UsageError("expected a single value: a text in quotes, a number, true or false")
    if field.secret and value and not (field.name.endswith("_url") and re.fullmatch(_OPEN_URL, str(value))):
        raise UsageError('a secret does not stand in this file; write { file = "/path" } or { env = "NAME" }')
    if not field.secret and has_login(str(value)):
        raise UsageError(f"a URL with a user or a query does not stand in this file; set {field.variable}")
    return str(_absolute(str(value))) if field.path and value else str(value)


def _read_secret(
    field: FileField, named: dict[str, Any], environment: Mapping[str, str], line: int, notes: list[Fault]
) -> str:
    if not field.secret or len(named) != 1 or not all(isinstance(name, str) and name for name in named.values()):
        raise UsageError(
            'expected { file = "/path" } or { env = "NAME" }' if field.secret else "it is no secret; write its value"
        )
    ((source, name),) = named.items()
    if source == "env":
        if not environment.get(name):
            notes.append(Fault(line, f"{field}: the variable {plain_text(name, 80)} is not set"))
        return environment.get(name, "")
    if source != "file":
        raise UsageError('expected { file = "/path" } or { env = "NAME" }')
    path = _absolute(name)
    text = _read_text(path, _MOST_SECRET_BYTES)
    if text is None:
        raise UsageError(f"{path} is not there")
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise UsageError(f"{path} may be read by others; `chmod 600` it")
    return ",".join(filter(None, map(str.strip, text.splitlines())))


def _absolute(name: str) -> Path:
    path = expand_path(name)
    if not path.is_absolute():
        raise UsageError(f"{plain_text(name, 80)} is a relative path; write it from / or ~")
    return path


def has_login(text: str) -> bool:
    """Whether it is a URL that may hold a password or a key."""
    return re.search(_LOGIN, text) is not None


def expand_path(name: str | Path) -> Path:
    """With `~` as a folder. `UsageError` where it names nobody's."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        raise UsageError(f"{plain_text(str(name), 80)} begins with the home of nobody here") from None


@dataclass(frozen=True, slots=True)
class AccountSettings:
    """An account at venues with keys of its own: `[accounts.NAME]`."""

    venues: tuple[Venue, ...]
    key: str = dataclasses.field(default="", repr=False)
    """Empty: its variable is not set here."""
    secret: str = dataclasses.field(default="", repr=False)
    passphrase: str = dataclasses.field(default="", repr=False)
    sub_account: str = ""
    demo: bool = False
    url: str | None = None

    def secrets(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.key, self.secret, self.passphrase)))


def parse_accounts(given: object) -> dict[str, AccountSettings]:
    """The named accounts of a JSON document, which `[accounts.NAME]` becomes. Errors name no value: it may be a key."""
    try:
        tables = json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        raise ValueError("expected JSON; write it as [accounts.NAME] in zuno.toml") from None
    if not isinstance(tables, dict):
        raise ValueError("expected a table for each account")
    accounts, owners = dict[str, AccountSettings](), dict[str, str]()
    for name, table in tables.items():
        account = table if isinstance(table, AccountSettings) else _account(name, table)
        if (other := owners.setdefault(account.key.lower() or f"{name} has none", name)) != name:
            raise ValueError(f"{name} and {other} have the same key: one ledger is kept of one account")
        accounts[name] = account
    return accounts


def _account(name: str, table: object) -> AccountSettings:
    where = f"account {plain_text(name, 40)}"
    if not re.fullmatch(_ACCOUNT_NAME, name) or name.lower() in RESERVED_ACCOUNTS:
        raise ValueError(f"{where}: use up to 32 letters, digits, - and _, but not {', '.join(RESERVED_ACCOUNTS)}")
    if not isinstance(table, dict):
        raise ValueError(f"{where}: expected a table")
    texts = {key: ",".join(map(str, part)) if isinstance(part, list) else str(part) for key, part in table.items()}
    if unknown := texts.keys() - ACCOUNT_KEYS.keys():
        raise ValueError(f"{where}: {plain_text(min(unknown), 40)} is none of {', '.join(ACCOUNT_KEYS)}")
    try:
        venues = tuple(map(parse_venue, filter(None, texts.get("venues", "").split(","))))
    except UsageError as error:
        raise ValueError(f"{where}: {str(error).rstrip('.')}") from None
    if len({venue.house for venue in venues}) != 1 or len(set(venues)) != len(venues):
        raise ValueError(f"{where}: expected venues of one company, each once")
    demo = texts.get("demo", "false").lower() in ("true", "1")
    without = [venue.label for venue in venues if demo and not venue.sandbox]
    if without:
        raise ValueError(f"{where}: {without[0]} has no demo trading")
    if "key" not in texts:
        raise ValueError(f"{where}: its key is not named")
    key, secret, passphrase = (texts.get(part, "") for part in _ACCOUNT_SECRETS)
    url, sub = texts.get("url"), texts.get("sub_account", "")
    if url is not None and not re.fullmatch(_OPEN_URL, url):
        raise ValueError(f"{where}: expected an http(s) URL")
    return AccountSettings(venues, key, secret, passphrase, plain_text(sub, 64) if sub else "", demo, url)


def write_template(fields: Iterable[FileField], given: Mapping[str, str]) -> str:
    """Every setting at its default, as a comment; those that are `given`, uncommented. Secrets are named."""
    text = (
        "# Settings of this home. An environment variable wins over its line here; `zuno config check` checks them.\n"
        '# A secret is named, never written: { file = "/path" } (mode 0600) or { env = "NAME" }.\n'
    )
    table = ""
    for field in fields:
        if field.name == ACCOUNTS:  # a table for each, which holds no value of the environment: there are keys in it
            text += f"\n# {field.meaning}\n# [{ACCOUNTS}.NAME]\n"
            text += "".join(f"# {meaning}\n# {key} =\n" for key, meaning in ACCOUNT_KEYS.items())
            continue
        if field.table != table:
            table = field.table
            text += f"\n[{table}]\n"
        value = f'{{ env = "{field.variable}" }}' if field.secret else _literal(field, given.get(field.name))
        text += f"# {field.meaning}\n{'' if field.name in given else '# '}{field.key} = {value}\n"
    return text


def _literal(field: FileField, given: str | None) -> str:
    value = field.default if given is None else given
    if isinstance(field.default, tuple | dict):
        parts = value.split(",") if isinstance(value, str) else value
        return json.dumps([part.strip() for part in parts if part.strip()], ensure_ascii=False)
    if isinstance(field.default, int | float | Decimal):
        return str(value).strip().lower()
    return json.dumps("" if value is None else str(value), ensure_ascii=False)


def read_wallets(path: Path) -> FileReading:
    """The wallets of a file with their labels: an address a line, its label after it; `#` starts a comment, a CSV of
    both works as well. A bad line is a fault and hides no other; `UsageError` where there is no file to read."""
    text = _read_text(path, _MOST_BYTES)
    if text is None:
        raise UsageError(f"{path} is not there")
    wallets, lines, faults, notes = dict[str, str](), dict[str, int](), list[Fault](), list[Fault]()
    for number, row in enumerate(text.splitlines(), start=1):
        line = row.partition("#")[0].strip().replace('"', "")
        match = re.fullmatch(_WALLET, line)
        if match is None:
            if line and (number > 1 or not line.lower().startswith(("address", "wallet"))):
                faults.append(Fault(number, "no address of 0x and 40 hex digits, with or without a label after it"))
            continue
        address = match[1].lower()
        if address in lines:
            notes.append(Fault(number, f"{address} stands in line {lines[address]} already"))
            continue
        lines[address], wallets[address] = number, plain_text((match[2] or "").strip(), _LONGEST_LABEL)
    return FileReading(path, True, wallets, lines, tuple(faults), tuple(notes))
