"""What every view of the market says of whose market it is."""

from pydantic import computed_field

from zuno.kernel.view import ForeignText, View
from zuno.trading.model.bundle import CANDLES_ONLY


class OriginView(View):
    """An answer about the market of one store."""

    synthetic: bool
    origin: ForeignText
    live: bool = False
    """Whether the venues were asked just now."""

    @property
    def market(self) -> str:
        """What a title calls it."""
        return "live" if self.live else self.origin

    @computed_field  # type: ignore[prop-decorator]
    @property
    def candles_only(self) -> bool:
        """Imported or downloaded history alone: feeds that were never recorded are absent, not missing."""
        return self.origin.startswith(CANDLES_ONLY)
