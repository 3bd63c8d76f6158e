"""A node that is quickly up: an empty chain behind the real lock, file and server. Called like `zuno devnet up`."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

from zuno.adapters.atomic_file import replace_file
from zuno.adapters.chain.devnet.process import DevnetProcess
from zuno.adapters.file_lock import FileLock


def main() -> None:
    manner, home = sys.argv[1], Path(sys.argv[sys.argv.index("--home") + 1])
    if manner == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with FileLock(home / "devnet.lock", "It runs already ({})."):
        if manner != "serving":
            time.sleep(60)
        serve(DevnetProcess(home, home, 0))


def serve(process: DevnetProcess) -> None:
    from zuno_devnet.chain import Genesis, LocalChain
    from zuno_devnet.node import DevnetNode
    from zuno_devnet.server import serve_until_signalled

    node = DevnetNode(LocalChain.create(Genesis()))

    def ready(url: str) -> None:
        replace_file(process.file, json.dumps({"url": url, "pid": os.getpid()}).encode(), durable=False)

    serve_until_signalled(node, 0, ready)


if __name__ == "__main__":
    main()
