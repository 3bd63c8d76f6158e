"""What `zuno config` says about the settings and their file."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from zuno.doors.config import ConfigCheckView, SettingView
from zuno.kernel.errors import Refused, UsageError
from zuno.settings import Settings, SettingsReading, examine_settings, file_fields, variable_of
from zuno.settings_file import FILE, expand_path, has_login, read_wallets, write_template

_LOG: Final = logging.getLogger(__name__)


def list_settings(reading: SettingsReading, *, private: bool) -> tuple[SettingView, ...]:
    """Settings that are set anywhere, with where from."""
    settings = reading.settings
    return tuple(
        SettingView(name=field.variable, key=str(field), value=settings.describe(name, private=private), origin=origin)
        for name, field in file_fields().items()
        if (origin := reading.origin(name)) != "default"
    )


def check_config(home: Path, file: Path | None) -> ConfigCheckView:
    """The file of a home, or another; what a wallets file has to say is part of it."""
    if file is not None and not file.exists():
        raise UsageError(f"{file} is not there.")
    reading = examine_settings(os.environ, home, file)
    faults, notes = [str(fault) for fault in reading.file.faults], [str(note) for note in reading.file.notes]
    for name in sorted(reading.environment & reading.file.values.keys()):
        notes.append(
            f"line {reading.file.lines[name]}: {file_fields()[name]} is set by {variable_of(name)}, which wins"
        )
    listed, wallets = reading.settings.watched_wallets, dict[str, str]()
    named = reading.settings.wallets_file or reading.file.values.get("wallets_file")  # of a file with faults, too
    if named is not None:
        try:
            path = home / expand_path(named)
            inside = read_wallets(path)
            wallets |= inside.values
            faults += [f"{path}, {fault}" for fault in inside.faults]
            notes += [f"{path}, {note}" for note in inside.notes]
            notes += [
                f"{address} is named by [wallets] watched_wallets and by {path}, line {inside.lines[address]}"
                for address in listed
                if address in inside.lines
            ]
        except UsageError as error:
            faults.append(f"[wallets] file: {error}")
    return ConfigCheckView(
        ok=not faults,
        file=str(reading.file.path),
        found=reading.file.found,
        settings=len(reading.file.lines),
        wallets=len(wallets | listed),
        faults=tuple(faults),
        notes=tuple(notes),
    )


class WatchedWallets:
    """Wallets of the settings and of their file, with labels. A bad edit later leaves the list as it was."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._in_file: Mapping[str, str] | None = None

    def read(self) -> dict[str, str]:
        if self._settings.wallets_file is not None:
            try:
                inside = read_wallets(self._settings.home / expand_path(self._settings.wallets_file))
                inside.require_faultless()
                self._in_file = inside.values
            except UsageError as error:
                if self._in_file is None:
                    raise
                _LOG.warning("%s The list of wallets stays as it was.", error)
        return {**(self._in_file or {}), **self._settings.watched_wallets}


def write_config(home: Path) -> ConfigCheckView:
    """A new file with the defaults as comments and what the environment sets; `Refused` where there is one."""
    path, variables = home / FILE, {name.upper(): text for name, text in os.environ.items() if text}
    fields = file_fields()
    given = {name: text for name, field in fields.items() if (text := variables.get(field.variable))}
    given = {name: text for name, text in given.items() if fields[name].secret or not has_login(text)}
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(write_template(fields.values(), given))
    except FileExistsError:
        raise Refused(f"{path} is there already and is not overwritten; `zuno config check` reads it.") from None
    except OSError as error:
        raise Refused(f"{path} cannot be written ({error.strerror}).") from error
    return check_config(home, None)
