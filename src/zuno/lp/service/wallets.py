"""Wallets as a person asks about them: which are kept, which one acts, what it holds, and who may move it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from zuno.kernel.errors import Malformed, Unavailable, UsageError
from zuno.kernel.text import Token, format_units
from zuno.kernel.units import Address
from zuno.kernel.view import View
from zuno.kernel.wire import derive
from zuno.lp.model.plan import WalletState
from zuno.lp.plan.unsigned import checksum_address, has_wrong_checksum
from zuno.lp.ports.chain import Chain
from zuno.lp.ports.wallets import StoredWallet, Wallets
from zuno.lp.service import arguments
from zuno.lp.service.to_views import place
from zuno.lp.service.views import ChainView, describe_place, format_moment, warn_tokens
from zuno.present.document import Document, Mark, Tone, Value, document, facts, lines, row, table
from zuno.present.values import bad, foreign, good, id_, name, quiet, when

UNLIMITED = (1 << 160) - 1
"""The most Permit2 can write, and more than there is of any token: nobody who allows this much means an amount."""

FOR_EVER = (1 << 48) - 1
"""The latest Permit2 can write, some nine million years from now."""


Look = Callable[[Address, Sequence[Address], Sequence[Address]], Awaitable[WalletState]]
"""Reads a wallet: holdings of these currencies, allowances of them to Permit2 and through it to these spenders."""


class WalletView(View):
    """A wallet kept in this home, or named by the settings."""

    address: str
    checksummed: str
    watch_only: bool
    acts: bool
    """It is the one that acts on chains that are not local worlds."""
    file: str | None
    """None: no file, the settings name it."""
    notes: tuple[str, ...] = ()

    def to_document(self) -> Document:
        keep = "Keep a copy of the file and its passphrase: without both, nobody can move what it holds."
        return document(
            "Wallet kept",
            facts(
                ("address", id_(self.checksummed)),
                ("key", "elsewhere: watched only" if self.watch_only else "here, under its passphrase"),
                ("file", id_(self.file) if self.file else "none"),
                ("acts", good("yes")) if self.acts else None,
            ),
            urgent=[] if self.watch_only else [keep],
            notes=self.notes,
        )


class WalletsView(View):
    wallets: tuple[WalletView, ...]
    acting: str | None
    note: str

    def to_document(self) -> Document:
        rows = (
            (
                id_(wallet.checksummed),
                quiet("elsewhere") if wallet.watch_only else "here",
                good("yes") if wallet.acts else "",
                wallet.file or "",
            )
            for wallet in self.wallets
        )
        listed = table(("wallet", "key", "acts", "file"), rows, spare=("file",)) if self.wallets else None
        return document(self.note, listed, notes=(note for wallet in self.wallets for note in wallet.notes))


class BalanceView(View):
    token: Token
    amount: str
    amount_human: str


class BalancesView(ChainView):
    wallet: str
    balances: tuple[BalanceView, ...]
    notes: tuple[str, ...] = ()

    def to_document(self) -> Document:
        def cell(balance: BalanceView) -> Value:
            unit, exact = balance.token.symbol if balance.token.verified else "?", balance.amount_human
            return Value(exact, number=Decimal(exact), unit=unit, digits=4)

        held = sum(balance.amount != "0" for balance in self.balances)
        rows = (
            row(_name_token(line.token), cell(line), tone=Tone.QUIET if line.amount == "0" else Tone.PLAIN)
            for line in self.balances
        )
        return document(
            f"Tokens in the wallet: {held} of {len(self.balances)} known",
            facts(("wallet", self.wallet)),
            table(("token", "amount"), rows),
            lines(*warn_tokens(line.token for line in self.balances), mark=Mark.WARNING),
            context=describe_place(self.chain, self.block),
            notes=map(foreign, self.notes),
            as_of=format_moment(self.timestamp),
        )


class AllowanceView(View):
    """Somebody who may move the wallet's tokens: Permit2 by the token's word, the others by Permit2's."""

    token: Token
    spender: str
    spender_name: str
    amount: str
    amount_human: str
    """ "unlimited" where it is as good as that."""
    unlimited: bool
    expires: int | None
    """The last second it is good for; None: until it is revoked."""
    expired: bool

    @property
    def limit(self) -> Value:
        return bad(self.amount_human) if self.unlimited and not self.expired else Value(self.amount_human)

    @property
    def until(self) -> Value:
        if self.expires is None:
            return Value("you revoke it")
        until = when(self.expires)
        return quiet(f"{until.text}, past") if self.expired else until


class AllowancesView(ChainView):
    wallet: str
    allowances: tuple[AllowanceView, ...]
    """Those above zero; expired ones are marked."""
    notes: tuple[str, ...] = ()

    def to_document(self) -> Document:
        rows = ((_name_token(line.token), line.spender_name, line.limit, line.until) for line in self.allowances)
        columns = ("token", "who may move it", "amount", "until")
        unlimited = sum(line.unlimited and not line.expired for line in self.allowances)
        return document(
            f"Allowances: {len(self.allowances)}, unlimited: {unlimited}"
            if self.allowances
            else "Nobody may move its tokens.",
            facts(("wallet", id_(self.wallet))),
            table(columns, rows, spare=("until",)) if self.allowances else None,
            lines(*warn_tokens(line.token for line in self.allowances), mark=Mark.WARNING),
            context=describe_place(self.chain, self.block),
            notes=map(foreign, self.notes),
            as_of=format_moment(self.timestamp),
        )


@dataclass(frozen=True, slots=True)
class WalletService:
    """The wallets of this home; no chain is asked."""

    wallets: Wallets
    acting: Callable[[], Address | None]

    async def create(self) -> WalletView:
        return self._wallet_view(self.wallets.create())

    async def add(self, file: str | None, watch: str | None) -> WalletView:
        """A keystore file, an address to watch, or a key that is asked for."""
        if file is not None and watch is not None:
            raise UsageError("Give a keystore file or --watch ADDRESS, not both.")
        if watch is not None:
            return self._wallet_view(self.wallets.watch(_address(watch)))
        return self._wallet_view(self.wallets.add_key() if file is None else self.wallets.add_keystore(file))

    async def show(self) -> WalletsView:
        kept, acting = self.wallets.all(), self.acting()
        shown = [self._wallet_view(wallet) for wallet in kept]
        if acting is not None and acting not in {wallet.address for wallet in kept}:
            notes = ("named by ZUNO_AGENT_WALLET_ADDRESS; no file here holds its key",)
            shown.append(self._wallet_view(StoredWallet(acting, watch_only=True, place="", notes=notes)))
        return WalletsView(wallets=tuple(shown), acting=acting, note=_who_acts(shown, acting))

    def _wallet_view(self, kept: StoredWallet) -> WalletView:
        checksummed, acts = checksum_address(kept.address), kept.address == self.acting()
        return derive(WalletView, kept, checksummed=checksummed, acts=acts, file=kept.place or None)


@dataclass(frozen=True, slots=True)
class WalletOnChain:
    """The wallet that acts on one chain. Every answer belongs to one block."""

    chain: Chain
    wallet: Address
    look: Look

    async def balance(self) -> BalancesView:
        tokens, notes = await self._tokens()
        seen = await self.look(self.wallet, [token.address for token in tokens], ())
        return BalancesView(
            **place(self.chain.info.name, seen.block),
            wallet=self.wallet,
            balances=tuple(
                BalanceView(token=token, amount=str(held), amount_human=format_units(held, token.decimals))
                for token in tokens
                for held in (seen.holdings[token.address],)
            ),
            notes=notes,
        )

    async def allowances(self) -> AllowancesView:
        tokens, notes = await self._tokens()
        at = self.chain.info.deployment
        spenders = {at.position_manager: "PositionManager", at.universal_router: "UniversalRouter"}
        seen = await self.look(self.wallet, [token.address for token in tokens if not token.native], list(spenders))
        return AllowancesView(
            **place(self.chain.info.name, seen.block),
            wallet=self.wallet,
            allowances=tuple(
                view
                for token in tokens
                if not token.native
                for view in _allowance_views(token, seen, at.permit2, spenders)
            ),
            notes=notes,
        )

    async def _tokens(self) -> tuple[tuple[Token, ...], tuple[str, ...]]:
        """The chain's native coin and known tokens, then those of the wallet's positions."""
        info = self.chain.info
        known = {token.address: token for token in (info.native.token, *info.tokens)}
        try:
            holdings = await self.chain.holdings(self.wallet)
        except (Unavailable, Malformed) as error:
            return tuple(known.values()), (f"tokens of positions are left out: {error}",)
        tokens = {
            token.address: token
            for position in holdings.snapshot.positions
            for token in (position.pool.token0, position.pool.token1)
        }
        notes = () if holdings.owned.complete else (f"tokens of some positions may be left out: {holdings.owned.note}",)
        others = {address: token for address, token in tokens.items() if address not in known}
        return tuple((known | others).values()), notes


def _name_token(token: Token) -> Value:
    return name(token.symbol) if token.verified else foreign(token.display_name)


def _who_acts(shown: Sequence[WalletView], acting: Address | None) -> str:
    local = "On sim and devnet their built-in wallet acts."
    if acting is not None:
        return local
    if not shown:
        return f"No wallet is kept here: `zuno wallet create` or `zuno wallet import` makes one. {local}"
    return f"None of them acts before ZUNO_AGENT_WALLET_ADDRESS names one. {local}"


def _address(text: str) -> Address:
    address = arguments.wallet_address(text)
    if has_wrong_checksum(text):
        raise UsageError(f"{text} has a letter in the wrong case, so its checksum fails; copy the address again.")
    return address


def _allowance_views(
    token: Token, seen: WalletState, permit2: Address, spenders: Mapping[Address, str]
) -> list[AllowanceView]:
    """Whoever may move this token, Permit2 first; who may move nothing of it is not listed."""
    now, by_token = seen.block.timestamp, seen.allowances.to_permit2.get(token.address, 0)
    listed = [_allowance(token, permit2, "Permit2", by_token, None, now)]
    for spender, title in spenders.items():
        grant = seen.allowances.grant(token.address, spender)
        listed.append(_allowance(token, spender, title, grant.amount, grant.until, now))
    return [view for view in listed if view.amount != "0"]


def _allowance(token: Token, spender: Address, name: str, amount: int, expires: int | None, now: int) -> AllowanceView:
    unlimited = amount >= UNLIMITED
    return AllowanceView(
        token=token,
        spender=spender,
        spender_name=name,
        amount=str(amount),
        amount_human="unlimited" if unlimited else format_units(amount, token.decimals),
        unlimited=unlimited,
        expires=None if expires == FOR_EVER else expires,
        expired=expires is not None and now > expires,
    )
