"""Python 3.12, 3.13 and 3.14 took modules and names away: none of ours needs one, when it is imported or later."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import mypy
import pytest

from tests.paths import CHECKOUT, DEVNET, SOURCE

MODULES = {
    "3.12": "asynchat asyncore distutils imp smtpd",
    "3.13": "_msi aifc audioop cgi cgitb chunk crypt imghdr lib2to3 mailcap msilib nis nntplib ossaudiodev pipes "
    "sndhdr spwd sunau telnetlib tkinter.tix uu xdrlib",
    "3.14": "_compression",
}
"""What stands under "Removed" in the notes of each release, in the order of the alphabet."""
NAMES = {
    "3.12": {
        "configparser": "SafeConfigParser",
        "importlib": "find_loader",
        "importlib.abc": "Finder",
        "importlib.metadata": "Deprecated DeprecatedList SelectableGroups",
        "importlib.util": "module_for_loader set_loader set_package",
        "locale": "format",
        "opcode": "hasnargs",
        "pkgutil": "ImpImporter ImpLoader",
        "sqlite3": "OptimizedUnicode enable_shared_cache version",
        "sqlite3.dbapi2": "enable_shared_cache",
        "sre_parse": "expand_template",
        "ssl": "RAND_pseudo_bytes match_hostname wrap_socket",
        "tokenize": "EXACT_TOKEN_TYPES",
        "unittest": "load_tests",
        "webbrowser": "Galeon Grail Netscape",
    },
    "3.13": {
        "configparser": "LegacyInterpolation",
        "importlib.metadata": "DeprecatedTuple",
        "importlib.resources": "Resource",
        "locale": "resetlocale",
        "re": "T TEMPLATE template",
        "sre_constants": "SRE_FLAG_TEMPLATE",
        "token": "ASYNC AWAIT",
        "tokenize": "ASYNC AWAIT StopTokenizing",
        "turtle": "settiltangle",
        "typing": "io re",
        "unittest": "findTestCases getTestCaseNames makeSuite",
        "unittest.loader": "findTestCases getTestCaseNames makeSuite",
        "webbrowser": "MacOSX",
    },
    "3.14": {
        "ast": "Bytes Ellipsis NameConstant Num Str",
        "asyncio": "AbstractChildWatcher FastChildWatcher MultiLoopChildWatcher PidfdChildWatcher SafeChildWatcher "
        "ThreadedChildWatcher get_child_watcher set_child_watcher",
        "asyncio.events": "AbstractEventLoopPolicy BaseDefaultEventLoopPolicy get_child_watcher set_child_watcher",
        "asyncio.unix_events": "AbstractChildWatcher BaseChildWatcher DefaultEventLoopPolicy FastChildWatcher "
        "MultiLoopChildWatcher PidfdChildWatcher SafeChildWatcher ThreadedChildWatcher",
        "importlib.abc": "ResourceReader Traversable TraversableResources",
        "multiprocessing.reduction": "ACKNOWLEDGE",
        "pkgutil": "find_loader get_loader",
        "pty": "master_open slave_open",
        "sqlite3": "version_info",
        "sqlite3.dbapi2": "version version_info",
        "urllib.parse": "Quoter",
        "urllib.request": "FancyURLopener URLopener",
    },
}
"""By release and module. The notes, and what 3.11, 3.12, 3.13 and 3.14 really hold, were compared."""
GONE = {
    *(module for modules in MODULES.values() for module in modules.split()),
    *(f"{module}.{name}" for table in NAMES.values() for module, names in table.items() for name in names.split()),
}
DOTTED = re.compile(rf"(?<![\w.])({'|'.join(map(re.escape, sorted(name for name in GONE if '.' in name)))})\b")
FROM = re.compile(r"^\s*(?:from|import) ([\w.]+)(?: import (\([^)]*\)|[^\n]*))?", re.MULTILINE)
STUBS = Path(mypy.__file__).parent / "typeshed" / "stdlib"
"""The standard library by release, as mypy knows it."""
OURS = [*SOURCE.rglob("*.py"), *DEVNET.rglob("*.py")]
IMPORT_ALL = """
import builtins, importlib, json, sys, types

gone, names = map(set, json.loads(sys.argv[1]))
short = {place.rpartition(".")[2] for place in gone if "." in place}
real, get = builtins.__import__, types.ModuleType.__getattribute__


def is_ours(caller):
    return caller.partition(".")[0] in ("zuno", "zuno_devnet")


def bring(name, scope=None, local=None, wanted=(), level=0):
    if level == 0 and name in gone and is_ours((scope or {}).get("__name__", "")):
        raise ModuleNotFoundError(name)
    return real(name, scope, local, wanted, level)


class Shortened(types.ModuleType):
    # For our modules alone: what others do on this Python is their own business.
    def __getattribute__(self, name):
        value = get(self, name)
        if name in short and is_ours(sys._getframe(1).f_globals.get("__name__", "")):
            if get(self, "__name__") + "." + name in gone:
                raise AttributeError(name + " is gone")
        return value


for place in gone:
    module = place.rpartition(".")[0]
    if module and module not in ("tkinter", "turtle"):
        importlib.import_module(module).__class__ = Shortened
builtins.__import__ = bring
failed = {}
for name in sorted(names):
    try:
        importlib.import_module(name)
    except (ImportError, AttributeError) as error:
        failed[name] = str(error)
print(json.dumps(failed))
"""


def list_modules() -> list[str]:
    paths = [path.relative_to(SOURCE.parent).with_suffix("") for path in OURS]
    names = [".".join(path.parts).removesuffix(".__init__") for path in paths if path.name != "__main__"]
    return sorted(names)


def import_all(modules: list[str], folder: Path | None = None) -> dict[str, str]:
    command = [sys.executable, "-W", "ignore", "-c", IMPORT_ALL, json.dumps([sorted(GONE), modules])]
    done = subprocess.run(command, cwd=folder or CHECKOUT, capture_output=True, text=True, check=True)
    failed: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return failed


@pytest.mark.slow
def test_every_module_is_imported_without_what_newer_pythons_removed(tmp_path: Path) -> None:
    modules = list_modules()
    assert len(modules) > 700
    assert import_all(modules) == {}


@pytest.mark.parametrize(
    "line",
    [
        "from importlib.abc import Traversable",
        "import importlib.abc; importlib.abc.Traversable",
        "import asyncio; asyncio.get_child_watcher",
        "import telnetlib",
        "from lib2to3 import pytree",
        "import ast; ast.Num",
    ],
)
def test_what_was_removed_is_absent_for_ours_alone(line: str, tmp_path: Path) -> None:
    for name in ("zuno_devnet_like", "zuno"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
        (tmp_path / name / "needy.py").write_text(line + "\n")
    assert set(import_all(["zuno.needy", "zuno_devnet_like.needy"], tmp_path)) == {"zuno.needy"}


def find_uses(source: str) -> set[str]:
    """What a source imports or reads of all that is gone, also in functions."""
    used = set(DOTTED.findall(source))
    for module, names in FROM.findall(source):
        used |= {module, *(f"{module}.{name}" for name in re.findall(r"\w+", names))}
    return used & GONE


def test_nothing_removed_is_used_in_a_function_either() -> None:
    assert find_uses("def late():\n    from importlib.abc import (\n        Loader,\n        Traversable,\n    )\n")
    assert find_uses("def late():\n    return ast.Num") == {"ast.Num"}
    used = {path.name: find_uses(path.read_text(encoding="utf-8")) for path in OURS}
    assert {name: found for name, found in used.items() if found} == {}


# -- the list, held against mypy's copy of the standard library


def is_true(test: ast.expr, version: tuple[int, int]) -> bool:
    match test:
        case ast.BoolOp(op=ast.And(), values=values):
            return all(is_true(value, version) for value in values)
        case ast.BoolOp(op=ast.Or(), values=values):
            return any(is_true(value, version) for value in values)
        case ast.Compare(left=left, ops=[ast.GtE()], comparators=[bound]) if ast.unparse(left) == "sys.version_info":
            return version >= ast.literal_eval(bound)
        case ast.Compare(left=left, ops=[ast.Lt()], comparators=[bound]) if ast.unparse(left) == "sys.version_info":
            return version < ast.literal_eval(bound)
        case ast.Compare(left=left) if ast.unparse(left) == "sys.platform":
            return ast.unparse(test) not in ("sys.platform == 'win32'", "sys.platform != 'linux'")
    return True


def list_names(body: list[ast.stmt], version: tuple[int, int]) -> Iterator[str]:
    for node in body:
        match node:
            case ast.If(test=test, body=then, orelse=otherwise):
                yield from list_names(then if is_true(test, version) else otherwise, version)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)]):
                yield name
            case ast.ImportFrom(names=aliases):
                yield from (alias.asname for alias in aliases if alias.asname)


@pytest.mark.slow
def test_the_list_has_every_name_that_a_release_removed() -> None:
    for path in STUBS.rglob("*.pyi"):
        module = ".".join(path.relative_to(STUBS).with_suffix("").parts).removesuffix(".__init__")
        text = path.read_text()
        releases = [release for release in NAMES if f"({release.replace('.', ', ')})" in text]
        if not releases or any(part.startswith("_") for part in module.split(".")):
            continue

        body = ast.parse(text).body
        for release in releases:
            after = (3, int(release.partition(".")[2]))
            removed = set(list_names(body, (3, after[1] - 1))) - set(list_names(body, after))
            listed = set(NAMES[release].get(module, "").split())
            assert {name for name in removed if not name.startswith("_")} <= listed, (module, release)


def test_the_list_has_every_module_that_a_release_removed() -> None:
    lines = [line.partition("#")[0].split(":") for line in (STUBS / "VERSIONS").read_text().splitlines()]
    ends = {line[0].strip(): line[1].strip().partition("-")[2] for line in lines if len(line) == 2}
    for release, modules in MODULES.items():
        last = f"3.{int(release.partition('.')[2]) - 1}"
        ended = [module for module, end in ends.items() if end == last and not module.startswith("distutils.")]
        assert sorted(ended) == modules.split()
