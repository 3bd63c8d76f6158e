"""Zuno: a desk of arguing agents for crypto capital."""

import os
import sys

_HERE = os.path.dirname(__file__)
_OLD_PACKAGES = dict.fromkeys(
    "agents app core desks domain execution frontends memory messages ports".split(),
    "docs/architecture.md says where its modules are",
)
_OLD_PACKAGES["core"] = "zuno.core.amm is now zuno.amm, and docs/architecture.md says where the rest is"
_OLD_DEVNET = "zuno.adapters.chain.devnet."


class _OldPackages:
    """Finds no module; of a package that has moved it says where to."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        root, _, package = name.partition(".")
        if root == "zuno" and _has_moved(package):
            raise ImportError(f"{name} is gone: {_OLD_PACKAGES[package]}", name=name)
        if name.startswith(_OLD_DEVNET) and not os.path.isfile(os.path.join(_HERE, *name.split(".")[1:]) + ".py"):
            raise ImportError(f"{name} is gone: the devnet is now the package zuno_devnet", name=name)


class _Missing:
    """Asked last, for a module of ours that nobody found."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name.startswith("zuno."):
            why = f"No module named {name!r}: docs/architecture.md says where modules are"
            raise ModuleNotFoundError(why, name=name)


def _has_moved(package: str) -> bool:
    return package in _OLD_PACKAGES and not os.path.isfile(os.path.join(_HERE, package, "__init__.py"))


# Asked last, for what nobody else finds; first where folders of an old package are left, which would pass for packages.
_place = 0 if any(map(_has_moved, _OLD_PACKAGES.keys() & os.listdir(_HERE))) else len(sys.meta_path)
sys.meta_path.insert(_place, _OldPackages)
sys.meta_path.append(_Missing)
