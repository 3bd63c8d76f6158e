"""One debate of every length, so that each of the ten kinds has a real payload."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.wire.debating import Overheard, Table, observed, shaken
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.lp.mesh.envelope import Envelope, signed_part
from zuno.lp.model.ballot import Exposure, RiskProfile
from zuno.lp.model.debate import Capital, FlowCreateStart, FlowFailed, Kind, PositionRequest, Role


def re_signed(envelope: Envelope, key: KeyFile) -> Envelope:
    unsigned = envelope.model_copy(update={"sig": "", "key": key.public})
    return unsigned.model_copy(update={"sig": key.sign(signed_part(unsigned)).hex()})


@pytest.fixture(scope="session")
async def spoken(tmp_path_factory: pytest.TempPathFactory) -> tuple[KeyFile, dict[Kind, Envelope]]:
    """An envelope of every kind, signed, as it travelled."""
    folder = tmp_path_factory.mktemp("spoken")
    context = await observed(folder)
    found: dict[Kind, Envelope] = {}
    for rounds in (2, 0):
        table = Table(folder, shaken(context, Fraction(6, 5)))
        await table.debate(max_rounds=rounds)
        assert isinstance(table.transport, Overheard)
        for envelope in table.transport.sent:
            found.setdefault(envelope.kind, envelope)
    wish = PositionRequest(
        capital=(Capital(token="WETH", amount="0.0500"), Capital(token="USDC", amount="50")),
        pair=("ETH", "USDC"),
        fee=500,
        exposure=Exposure.LONG_TOKEN,
    )
    create = FlowCreateStart(chain="sim", wish=wish, profile=RiskProfile.AGGRESSIVE, max_rounds=10)
    failed = FlowFailed(at=Role.SCOUT, error="unavailable", reason="no “node” answered \u2028 today")
    start = found[Kind.FLOW_START]
    for payload in (create, failed):
        odd = start.model_copy(update={"kind": payload.kind, "payload": payload})
        found[payload.kind] = re_signed(odd, table.key)
    return table.key, found
