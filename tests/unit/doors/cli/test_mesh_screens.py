"""A mesh on a screen: what peers say of themselves is theirs, and is shown in plain words."""

from __future__ import annotations

from zuno.lp.service.mesh import MeshTableView, MeshView, PeerView, RoleLine
from zuno.lp.service.mesh_supervisor import MeshEventView
from zuno.present.text import to_text

EVIL = "ok\x1b[2J\x07\x9b31m\u202e\nand more " + "x" * 5_000


def peer(version: str, reasons: dict[str, int]) -> PeerView:
    """Not checked on its way in, as if it came from a report that somebody else wrote."""
    return PeerView.model_construct(
        role="critic", here=True, pid=1, since=1, restarts=0, answers=True, round_trip_ms=1.0, version=version, heard=1,
        said=1, rejected=3, dead=0, reasons=reasons, edition=2, strangers=6_610, node="not ours", node_why=EVIL,
    )  # fmt: skip


def printed(view: MeshView | MeshTableView) -> str:
    return to_text(view.to_document(), 200)


def harmless(text: str) -> bool:
    return text.replace("\n", "").isprintable() and max(map(len, text.splitlines())) < 2_100


def test_versions_and_reasons_are_plain_and_bounded() -> None:
    reasons = {f"from the strategist: {EVIL}": 3}
    view = MeshView.model_construct(
        transport="axl", kept_by=None, peers=(peer(EVIL, reasons),), node="late", node_why=EVIL
    )
    text = printed(view)
    assert harmless(text)
    assert "cli node: late. ok[2J31m and more" in text
    assert "critic node: not ours. ok[2J31m and more" in text
    assert "6,610" in text
    assert "critic rejected 3× from the strategist: ok[2J31m and more" in text


def test_addresses_of_another_machine_s_table_are_plain() -> None:
    line = RoleLine(
        role="critic", key="ab" * 32, here=False, iroh_address="h\x1b[2J:1", axl_peer_id="cd" * 32,
        axl_api_url="http://h\x07/",
    )  # fmt: skip
    assert harmless(printed(MeshTableView(folder="f", roles=(line,), said="said")))


def test_an_event_quotes_a_peer_s_last_words_in_plain_ones() -> None:
    line = MeshEventView(at=1_700_000_000_000, event="died", role="critic", pid=1, text=EVIL).write_line()
    assert harmless(line)
    assert "ok[2J31m and more" in line
