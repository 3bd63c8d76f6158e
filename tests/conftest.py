"""What every test may lean on: a clean environment, the contract packages, and the devnet's world built once."""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import tempfile
from collections import Counter
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("sha3") is not None:  # a faster Keccak than the package's, chosen before anything is hashed
    os.environ.setdefault("ETH_HASH_BACKEND", "pysha3")

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # else a memory server's idle client writes into another test's output

import tests.examples  # noqa: F401  # chooses the profile of all properties
from tests.paths import NODE_MODULES
from tests.skips import check_skips
from tests.wire.certificates import trust_nobody
from tests.wire.copied_world import CopiedWorld
from zuno.adapters.chain.sim import world_file
from zuno.adapters.eth_imports import limit_recursion

# Import order differs from worker to worker; whoever raised the recursion limit has done so after these.
for name in ("py_ecc", "eth", "web3"):
    with suppress(ImportError):
        import_module(name)
limit_recursion()
gc.disable()  # until all tests are collected: a million objects that stay, walked again and again

MEMORY = Path("/dev/shm")
"""Where temporary files lie if there is room: thousands of stores wait for the disk with each write."""
ROOM = 4 << 30


def _write_to_memory() -> None:
    usable = os.access(MEMORY, os.W_OK) and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
    if usable and "TMPDIR" not in os.environ and shutil.disk_usage(MEMORY).free > ROOM:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


_write_to_memory()


def pytest_configure(config: pytest.Config) -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ:
        folder = os.environ["ZUNO_TEST_MARKETS"] = tempfile.mkdtemp(prefix="zuno-markets-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    if os.environ.get("ZUNO_TEST_STRICT"):
        check_skips(config)


def keep_every_nth(items: list[pytest.Item]) -> None:
    """Of a test marked `soak(every=N)` each N-th case that is not soak by a mark of its own loses the mark."""
    seen: Counter[str] = Counter()
    for item in items:
        marks = [mark for mark in item.own_markers if mark.name == "soak" and mark.kwargs]
        if not marks or any(not mark.kwargs for mark in item.iter_markers("soak")):
            continue
        test = item.nodeid.partition("[")[0]
        if seen[test] % marks[0].kwargs["every"] == 0:
            item.own_markers.remove(marks[0])
        seen[test] += 1


@pytest.hookimpl(tryfirst=True)  # before `-m "not soak"` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is slow comes first. Each worker begins with an equal part of the list, and whoever is done takes from the
    end of another's: so the first part begins with what needs the devnet's world, which one worker then builds while
    the others have something else to do; every other part with its share of the whole stories, which wait for processes
    and clocks; and all of them end with what is quick."""
    keep_every_nth(items)
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    kinds: tuple[list[pytest.Item], list[pytest.Item], list[pytest.Item]] = ([], [], [])
    for item in items:
        world = "world_cache" in getattr(item, "fixturenames", ())
        kinds[0 if world else 1 if "scenario" in item.path.parts else 2].append(item)
    worldly, stories, quick = kinds
    tellers = max(1, workers - 1)
    shares = [stories[len(stories) * i // tellers : len(stories) * (i + 1) // tellers] for i in range(tellers)]
    shares = [worldly, *shares] if workers > 1 else [worldly + stories]
    found: list[pytest.Item] = []
    for share in shares:
        room = max(0, len(items) // workers - len(share))
        found += [*share, *quick[:room]]
        quick = quick[room:]
    items[:] = [*found, *quick]


trust_nobody()


def pytest_collection_finish() -> None:
    """What collection left stays to the end: the collector need not walk it."""
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's settings leak into a test. New paper accounts hold the debate alone, unless a test says otherwise."""
    for name in list(os.environ):
        if name.startswith("ZUNO_") and not name.startswith("ZUNO_TEST_"):
            monkeypatch.delenv(name)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ZUNO_SLEEVES", "debate:1")


@pytest.fixture(autouse=True)
def play_each_story_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Homes without a world of their own begin with copies of one. The embedded world's own tests play it anew."""
    monkeypatch.setattr(world_file, "SimWorld", CopiedWorld)


@pytest.fixture(scope="session")
def node_modules() -> Path:
    if not (NODE_MODULES / "@uniswap").is_dir():
        pytest.skip("the v4 contract packages are not installed: run `make devnet`")
    return NODE_MODULES


@pytest.fixture(scope="session")
def world_cache(node_modules: Path) -> Path:
    """A folder that holds the finished devnet world of the default seed, built by whoever comes first."""
    from tests.wire.devnet_world import build_world

    return build_world(node_modules)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty ZUNO_HOME."""
    return tmp_path / "home"


@pytest.fixture(scope="session")
def invented_market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder `market` of a home after `data synth --seed 7`, invented once by whichever worker comes first."""
    from tests.wire.commands import run_zuno

    inside_worker = "PYTEST_XDIST_WORKER" in os.environ
    base = tmp_path_factory.getbasetemp()
    home = (base.parent if inside_worker else base) / "invented"
    home.mkdir(exist_ok=True)
    with open(home / "inventing.lock", "a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "market").exists():
            made = run_zuno(home / "first", "data", "synth", "--seed", "7")
            assert made.code == 0, made.err
            (home / "first" / "market").rename(home / "market")
    return home / "market"
