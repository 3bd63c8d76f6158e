"""The chains Zuno knows, one row each: id, v4 deployment, native coin, curated tokens, fee model, block time and
confirmations. Facts, verified against the chain at start.

Sources: v4 contracts https://docs.uniswap.org/contracts/v4/deployments; USDC
https://developers.circle.com/stablecoins/usdc-contract-addresses; wrapped coins `WETH9` of Uniswap's sdk-core. On
Polygon WETH is bridged ether, a token like any other; what wraps the native coin is WPOL (once WMATIC).
"""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import combinations

from zuno.amm.model import PoolKey
from zuno.kernel.notify import NoticeLabel
from zuno.kernel.text import NATIVE, Token, format_units
from zuno.kernel.units import Address, Pips, Wei
from zuno.lp.model.gas import GasRules

PERMIT2: Address = Address("0x000000000022d473030f116ddee9f6b43ac78ba3")


class DataFee(StrEnum):
    """How a rollup charges for posting calldata to its parent chain."""

    NONE = "none"
    OP_STACK = "op-stack"
    ARBITRUM = "arbitrum"


class SwapStruct(StrEnum):
    """Which shape the deployment's UniversalRouter expects for a single-pool swap: 2.1.0 has five fields, later ones
    a least price for the hop as the sixth."""

    FIVE_FIELDS = "five-fields"
    MIN_HOP_PRICE = "min-hop-price"


@dataclass(frozen=True, slots=True)
class Deployment:
    pool_manager: Address
    position_manager: Address
    universal_router: Address
    permit2: Address = PERMIT2
    swap_struct: SwapStruct = SwapStruct.FIVE_FIELDS
    quoter: Address = NATIVE
    state_view: Address = NATIVE
    """Both are named on local chains alone, for scripts: Zuno reads storage and quotes on its own pool."""


@dataclass(frozen=True, slots=True)
class NativeCoin:
    """What gas is paid in on a chain; v4 calls it by the zero address."""

    token: Token
    wrapped: str
    """The symbol of the token whose contract gives it one for one."""
    price_id: str
    """Its id at the price service (CoinGecko's)."""

    @property
    def symbol(self) -> str:
        return self.token.symbol

    def amount_text(self, wei: int) -> str:
        return f"{format_units(wei, self.token.decimals)} {self.symbol}"


ETH = Token(NATIVE, "ETH", 18, verified=True)
ETHER = NativeCoin(ETH, "WETH", "ethereum")
POL = NativeCoin(Token(NATIVE, "POL", 18, verified=True), "WPOL", "polygon-ecosystem-token")


def _gas(rise: Fraction, tip: int, whole: int, exit_tip: int, exit_whole: int) -> GasRules:
    """Tips in gwei, whole transactions in thousandths of a coin."""
    return GasRules(rise, Wei(tip * 10**9), Wei(whole * 10**15), Wei(exit_tip * 10**9), Wei(exit_whole * 10**15))


# How far a base fee can rise from block to block: on Ethereum by an eighth (EIP-1559); on an OP-stack rollup by
# (elasticity - 1) / denominator, 5/250 since Canyon and 5/125 on Base since 2026-02; on Polygon by a sixteenth since
# Delhi, by less since Bhilai; on Arbitrum by e^(gas of a block / (speed limit × inertia)) = e^(32 / (7 × 102)) at most.
_ETHEREUM_GAS = _gas(Fraction(9, 8), tip=20, whole=100, exit_tip=100, exit_whole=500)
_OP_STACK_GAS = _gas(Fraction(51, 50), tip=2, whole=10, exit_tip=20, exit_whole=50)
_BASE_GAS = _gas(Fraction(26, 25), tip=2, whole=10, exit_tip=20, exit_whole=50)
_ARBITRUM_GAS = _gas(Fraction(21, 20), tip=2, whole=10, exit_tip=20, exit_whole=50)
_POLYGON_GAS = _gas(Fraction(17, 16), tip=500, whole=5_000, exit_tip=5_000, exit_whole=50_000)


@dataclass(frozen=True, slots=True)
class ChainInfo:
    """A chain as we expect it to be; `name` is what a person types after --chain."""

    id: int
    name: str
    title: str
    deployment: Deployment
    tokens: tuple[Token, ...]
    data_fee: DataFee = DataFee.NONE
    testnet: bool = False
    confirmations: int = 3
    """Blocks from the one that holds a transaction, itself counted, before its receipt is final; 0 counts as 1."""
    block_millis: int = 12_000
    """Between two blocks, as the chain is run."""
    path_seconds: int = 3_600
    """Between two prices of a position's past; in a world of our own every block counts."""
    rpc_variable: str = ""
    native: NativeCoin = ETHER
    gas: GasRules = _ETHEREUM_GAS

    @property
    def wrapper(self) -> Token | None:
        return next((token for token in self.tokens if token.symbol == self.native.wrapped), None)

    @property
    def rpc_url_variable(self) -> str:
        return self.rpc_variable or f"ZUNO_{self.name.upper().replace('-', '_')}_RPC_URL"

    def token(self, address: Address) -> Token | None:
        return next((token for token in self.tokens if token.address == address), None)

    def native_side(self, key: PoolKey) -> int | None:
        """Which of a pool's currencies is the chain's own or its wrapper, if either is."""
        ours = {NATIVE, *([self.wrapper.address] if self.wrapper else [])}
        return next((side for side, address in enumerate((key.currency0, key.currency1)) if address in ours), None)


def _address(text: str) -> Address:
    return Address(text.lower())


def _token(symbol: str, address: str, decimals: int = 18) -> Token:
    return Token(_address(address), symbol, decimals, verified=True)


_OP_WETH = _token("WETH", "0x4200000000000000000000000000000000000006")


def _deployment(*addresses: str) -> Deployment:
    """PoolManager, PositionManager and UniversalRouter."""
    pool_manager, position_manager, universal_router = map(_address, addresses)
    return Deployment(pool_manager, position_manager, universal_router)


# fmt: off
CHAINS: tuple[ChainInfo, ...] = (
    ChainInfo(1, "mainnet", "Ethereum", _deployment(
        "0x000000000004444c5dc75cB358380D2e3dE08A90", "0xbd216513d74c8cf14cf4747e6aaa6420ff64ee9e",
        "0x66a9893cc07d91d95644aedd05d03f95e1dba8af"),
        (ETH, _token("USDC", "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48", 6),
         _token("USDT", "0xdac17f958d2ee523a2206206994597c13d831ec7", 6),
         _token("DAI", "0x6b175474e89094c44da98b954eedeac495271d0f"),
         _token("WETH", "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2"))),
    ChainInfo(10, "optimism", "Optimism", _deployment(
        "0x9a13f98cb987694c9f086b1f5eb990eea8264ec3", "0x3c3ea4b57a46241e54610e5f022e5c45859a1017",
        "0x851116d9223fabed8e56c0e6b8ad0c31d98b3507"),
        (ETH, _token("USDC", "0x0b2c639c533813f4aa9d7837caf62653d097ff85", 6), _OP_WETH),
        DataFee.OP_STACK, block_millis=2_000, gas=_OP_STACK_GAS),
    ChainInfo(130, "unichain", "Unichain", _deployment(
        "0x1f98400000000000000000000000000000000004", "0x4529a01c7a0410167c5740c487a8de60232617bf",
        "0xef740bf23acae26f6492b10de645d6b98dc8eaf3"),
        (ETH, _token("USDC", "0x078d782b760474a361dda0af3839290b0ef57ad6", 6), _OP_WETH),
        DataFee.OP_STACK, block_millis=1_000, gas=_OP_STACK_GAS),
    ChainInfo(137, "polygon", "Polygon", _deployment(
        "0x67366782805870060151383f4bbff9dab53e5cd6", "0x1ec2ebf4f37e7363fdfe3551602425af0b3ceef9",
        "0x1095692a6237d83c6a72f3f5efedb9a670c49223"),
        (POL.token, _token("USDC", "0x3c499c542cef5e3811e1192ce70d8cc03d5c3359", 6),
         _token("USDT", "0xc2132d05d31c914a87c6611c10748aeb04b58e8f", 6),
         _token("DAI", "0x8f3cf7ad23cd3cadbd9735aff958023239c6a063"),
         _token("WETH", "0x7ceb23fd6bc0add59e62ac25578270cff1b9f619"),
         _token("WPOL", "0x0d500b1d8e8ef31e21c99d1db9a6444d3adf1270")),
        confirmations=16, block_millis=2_000, native=POL,  # blocks may be replaced until a milestone covers them
        gas=_POLYGON_GAS),
    ChainInfo(8453, "base", "Base", _deployment(
        "0x498581ff718922c3f8e6a244956af099b2652b2b", "0x7c5f5a4bbd8fd63184577525326123b519429bdc",
        "0x6ff5693b99212da76ad316178a184ab56d299b43"),
        (ETH, _token("USDC", "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913", 6), _OP_WETH),
        DataFee.OP_STACK, block_millis=2_000, gas=_BASE_GAS),
    ChainInfo(42161, "arbitrum", "Arbitrum One", _deployment(
        "0x360e68faccca8ca495c1b759fd9eee466db9fb32", "0xd88f38f930b7952f2db2432cb002e7abbf3dd869",
        "0xa51afafe0263b40edaef0df8781ea9aa03e381a3"),
        (ETH, _token("USDC", "0xaf88d065e77c8cc2239327c5edb3a432268e5831", 6),
         _token("USDT", "0xfd086bc7cd5c481dcc9c85ebe478a1c0b69fcbb9", 6),
         _token("DAI", "0xda10009cbd5d07dd0cecc66161fc93d7c9000da1"),
         _token("WETH", "0x82af49447d8a07e3bd95bd0d56f35241523fbab1")),
        DataFee.ARBITRUM, block_millis=250, gas=_ARBITRUM_GAS),
    ChainInfo(11155111, "sepolia", "Sepolia", _deployment(
        "0xE03A1074c86CFeDd5C142C4F04F1a1536e203543", "0x429ba70129df741B2Ca2a85BC3A2a3328e5c09b4",
        "0x3A9D48AB9751398BbFa63ad67599Bb04e4BdF98b"),
        (ETH, _token("USDC", "0x1c7d4b196cb0c7b01d743fbc6116a902379c7238", 6),
         _token("WETH", "0xfff9976782d46cc05630d1f6ebab18b2324d6b14")),
        testnet=True),
    ChainInfo(84532, "base-sepolia", "Base Sepolia", _deployment(
        "0x05E73354cFDd6745C338b50BcFDfA3Aa6fA03408", "0x4b2c77d209d3405f41a037ec6c77f7f5b8e2ca80",
        "0x492e6456d9528771018deb9e87ef7750ef184104"),
        (ETH, _OP_WETH), DataFee.OP_STACK, testnet=True, block_millis=2_000, gas=_BASE_GAS),
    ChainInfo(421614, "arbitrum-sepolia", "Arbitrum Sepolia", _deployment(
        "0xFB3e0C6F74eB1a21CC1Da29aeC80D2Dfe6C9a317", "0xAc631556d3d4019C95769033B5E719dD77124BAc",
        "0xefd1d4bd4cf1e86da286bb4cb1b8bced9c10ba47"),
        (ETH,), DataFee.ARBITRUM, testnet=True, block_millis=250, gas=_ARBITRUM_GAS),
    ChainInfo(1301, "unichain-sepolia", "Unichain Sepolia", _deployment(
        "0x00b036b58a818b1bc34d502d3fe730db729e62ac", "0xf969aee60879c54baaed9f3ed26147db216fd664",
        "0xf70536b3bcc1bd1a972dc186a2cf84cc6da6be5d"),
        (ETH, _OP_WETH), DataFee.OP_STACK, testnet=True, block_millis=1_000, gas=_OP_STACK_GAS),
)
# fmt: on
FEE_TIERS: tuple[tuple[int, int], ...] = ((100, 1), (500, 10), (3000, 60), (10000, 200))
"""Fee in pips and tick spacing of the tiers people actually use; anything else is found by its Initialize log."""


_UNWRAPPED = {chain.native.wrapped: chain.native.symbol for chain in CHAINS}


def unwrap_symbol(symbol: str) -> str:
    """WETH as ETH, WPOL as POL: a wrapper redeems one for one in its own contract, so both names have one price."""
    return _UNWRAPPED.get(symbol, symbol)


def market_name(token: Token) -> str:
    """The name price sources are asked for: a wrapper by what it wraps, an unverified token by its address.

    An unverified symbol is never used: a fake USDC would get the dollar's price.
    """
    return unwrap_symbol(token.symbol) if token.verified else token.address


def curated_keys(info: ChainInfo) -> tuple[PoolKey, ...]:
    """Every pair of curated tokens at every usual tier, without hooks."""
    ordered = sorted(info.tokens, key=lambda token: int(token.address, 16))
    return tuple(
        PoolKey(token0.address, token1.address, Pips(fee), spacing)
        for token0, token1 in combinations(ordered, 2)
        for fee, spacing in FEE_TIERS
    )


def chain_named(name: str) -> ChainInfo | None:
    """A known chain by its name, its title's alias or its id as text."""
    wanted = name.strip().lower()
    wanted = {"ethereum": "mainnet", "eth": "mainnet", "op": "optimism", "arb": "arbitrum"}.get(wanted, wanted)
    return next((chain for chain in CHAINS if wanted in (chain.name, str(chain.id))), None)


def native_coin(chain: str) -> NativeCoin:
    """What gas is paid in on a chain by its name; in local worlds it is ether."""
    info = chain_named(chain)
    return ETHER if info is None else info.native


def chain_label(chain: str) -> NoticeLabel:
    """Whether what is said of a chain is about real money."""
    return NoticeLabel.SYNTHETIC if chain_named(chain) is None else NoticeLabel.LIVE
