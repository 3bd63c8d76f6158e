"""`zuno backup`, `restore` and `home`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from zuno.doors.cli import consent
from zuno.doors.cli.options import Answer, Json, argument, command, group, number, option

if TYPE_CHECKING:
    from zuno.doors.zuno import Zuno

home = group("What the home holds on disk, and moving it.")


def backup(
    zuno: Zuno,
    file: Annotated[str, argument("FILE", "File to write, a name with {date} in it, or a folder.")],
    keep: Annotated[int | None, number("--keep", "N", "Keep the newest N backups of this home there.")] = None,
) -> Answer:
    """Write the home to one signed file while everything runs. Private keys are left out."""
    return zuno.home_desk().backup(file, keep)


def restore(zuno: Zuno, file: Annotated[str, argument("FILE", "Backup file.")]) -> Answer:
    """Restore a backup into an empty home, and verify its journal."""
    return zuno.home_desk().restore(file)


@command(home, "usage")
def home_usage(zuno: Zuno) -> Answer:
    """Show the size of the home by kind and place, its growth per day and per cycle, and the free space."""
    return zuno.home_desk().usage()


@command(home, "unlock")
def home_unlock(zuno: Zuno, json: Json = False) -> Answer:
    """Let a restored home take new risk again, after a typed confirmation. Its older mandates are revoked."""
    return zuno.home_desk().unlock(consent.ask_to_type(json=json))


@command(home, "move")
def home_move(
    zuno: Zuno,
    folder: Annotated[str | None, argument("DIR", "New folder of the home.")] = None,
    to: Annotated[str | None, option("--to", "URL", "Move the journal alone, to postgres://….")] = None,
) -> Answer:
    """Move the home to another folder, or its journal to a database: copy, verify, switch."""
    return zuno.home_desk().move(folder, to)


@command(home, "compact")
def home_compact(
    zuno: Zuno,
    older: Annotated[
        str | None, option("--older", "SPAN", "Archive bundles last used longer ago than this: 90d, 26w.")
    ] = None,
) -> Answer:
    """Store bundles in shared blocks, archive old ones beside the journal and free the room. Nothing is deleted."""
    from zuno.kernel.arguments import parse_span

    return zuno.compact_home(None if older is None else parse_span(older))
