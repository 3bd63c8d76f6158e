"""The owner's own look at a plan that peers elsewhere sent: nothing of it is taken on their word.

A lying Scout is held against the chain, a lying Strategist, Critic or Arbiter against the rules.
"""

from collections.abc import Mapping
from typing import Final

from zuno.amm.model import Block, LpPosition, PoolState
from zuno.kernel.errors import Malformed, Unavailable
from zuno.kernel.units import HexId, Seconds
from zuno.lp.agents.conclude import conclude, data_cautions
from zuno.lp.agents.pool_choice import MOST_POOLS, split_capital
from zuno.lp.agents.prompt_facts import facts_of, find_subject, text_faults
from zuno.lp.agents.transcript import MAX_THOUGHT
from zuno.lp.agents.verify_debate import check_debate
from zuno.lp.mesh.delivery import LIFETIME_MS, SKEW_MS
from zuno.lp.model.ballot import DecidedBy, Decision, NextStep
from zuno.lp.model.debate import Context, Debate, FlowCreateStart, FlowStart, PlanReady, Start
from zuno.lp.rules.ballot import arbiter_decides, choose_next_step, critic_decides, judge_proposal, with_arbiter_verdict

OLDEST_BLOCK: Final = LIFETIME_MS // 1000
"""Seconds of the chain's own time by which a context's block may lie before the owner's question: as long as a letter
lives. An honest Scout looks after it was asked, at the head of a node that may lag a little; one that may go back
further picks the price it likes."""
NEWEST_BLOCKS: Final = 5
"""Blocks before the head that are of now however old they are: a chain on which nothing happens (an idle devnet) makes
none, and one that it makes in mid-debate must not make an honest Scout a liar."""
NODES_APART: Final = SKEW_MS // 1000
"""Seconds by which the Scout's node may be ahead of the owner's: as much as their clocks may differ."""
NO_FIGURES: Final = (ArithmeticError, ValueError, TypeError, LookupError, RecursionError)
"""What comes of computing or reading with figures that mean nothing."""
SEEDED_CHAIN: Final = "sim"
"""The one chain whose prices come from a seed; everywhere else there is a market, or a reference of its own."""


def check_ready(context: Context, ready: PlanReady, start: Start) -> None:
    """`Malformed`, with the reason, unless the plan answers the request and follows from its context."""
    check_asked(context, start)
    if isinstance(start, FlowCreateStart):
        _check_capital(context, start)
    check_debate(context, ready.debate.rounds)
    check_transcript(context, ready.debate, ready.decision.index)
    last = ready.debate.rounds[-1]
    if not last.is_judged:
        raise Malformed("the last round was never judged")
    ruled = _decide_by_rules(context, ready)
    claimed = ready.decision
    if (claimed.index, claimed.decided_by) != (ruled.index, ruled.decided_by):
        raise Malformed(f"candidate {claimed.index} was chosen, by the rules it is {ruled.index}")
    if conclude(context, ready.debate, with_arbiter_verdict(ruled, claimed.verdict)) != ready:
        raise Malformed("the decision, its cautions or its confidence do not follow from the debate")


def check_transcript(context: Context, debate: Debate, decided: int | None = None) -> None:
    """`Malformed` unless every thought cites its figures."""
    for thought in debate.transcript:
        if thought.round >= max(len(debate.rounds), 1):
            raise Malformed(f"the {thought.role} thought in round {thought.round}, which was never argued")
        facts = facts_of(context, debate.rounds, thought.round)
        if faults := text_faults(thought.text, facts, find_subject(thought, decided), (0, MAX_THOUGHT)):
            raise Malformed(f"the {thought.role} said in round {thought.round}: {faults[0]}")


def check_asked(context: Context, start: Start) -> None:
    """The context is about what the owner asked for, and no more. No chain has confirmed its figures yet."""
    asked = (start.chain, start.profile, start.max_rounds)
    if (context.chain, context.profile, context.max_rounds) != asked:
        raise Malformed("the context is for another chain, profile or number of rounds than was asked for")
    hedges = [facts.hedge for facts in context.scenes]
    short = start.short if isinstance(start, FlowStart) else 0
    if any((hedge is not None) != start.hedged or (hedge is not None and hedge.held != short) for hedge in hedges):
        raise Malformed("the context is hedged otherwise than the owner asked for")
    if context.own_range != start.own_range:
        raise Malformed("the context is about another range than the owner named")
    if context.seeded is not (start.chain == SEEDED_CHAIN):
        held = "are" if start.chain == SEEDED_CHAIN else "are not"
        raise Malformed(f"prices on {start.chain} {held} from a seeded series, and the context says otherwise")
    if isinstance(start, FlowStart):
        position = context.scenes[0].position
        if context.flow != "rebalance" or len(context.scenes) != 1 or position is None:
            raise Malformed("the context is not of one position")
        if position.id != start.position_id:
            raise Malformed(f"the context is about position {position.id}, asked was about {start.position_id}")
        key = position.pool.key
        if key.has_hooks and key.hooks not in start.hooks:
            raise Malformed(f"position {position.id} lies in a pool with hooks that the owner does not trust")
        if context.scenes[0].pool != position.pool:
            raise Malformed(f"the context is about another pool than position {position.id} lies in")
        return
    if context.flow != "create" or context.wish != start.wish:
        raise Malformed("the context is about another wish than was asked for")
    if len(context.scenes) > MOST_POOLS:
        raise Malformed(f"{len(context.scenes)} pools were surveyed, {MOST_POOLS} are the most")
    for pool_facts in context.scenes:
        if pool_facts.position is not None:
            raise Malformed(f"the context is about position {pool_facts.position.id}, asked was about a new one")


def _check_capital(context: Context, start: FlowCreateStart) -> None:
    """Each pool is one the owner's wish allows, and holds the owner's own capital and no other."""
    for pool_facts in context.scenes:
        brought = (pool_facts.capital0, pool_facts.capital1)
        if brought not in split_capital(start.wish, pool_facts.pool, context.chain, start.hooks):
            raise Malformed(f"pool {pool_facts.pool.id} with {brought} is not what the owner asked for")


def check_age(block: Block, head: Block, waited: Seconds) -> None:
    """`Malformed` for a block too old to argue about, or from the future; `Unavailable` until the owner's node has it.
    `head`: the owner's own; `waited`: how long ago the owner asked."""
    ahead = block.timestamp - head.timestamp
    if 0 < ahead <= NODES_APART and block.number > head.number:
        raise Unavailable(
            f"The Scout saw block {block.number}, and this home's node is {ahead} s behind it at {head.number}; join "
            "the debate once it has caught up."
        )
    if ahead > 0 or block.number > head.number:
        raise Malformed(
            f"block {block.number} is from the future: {ahead} s after the chain's newest, {head.number}, and nodes "
            f"are at most {NODES_APART} s apart"
        )
    if -ahead > waited + OLDEST_BLOCK and head.number - block.number > NEWEST_BLOCKS:
        raise Malformed(
            f"block {block.number} is {-ahead} s older than the chain's newest; {waited} s after the question at most "
            f"{waited + OLDEST_BLOCK} s are believed, or {NEWEST_BLOCKS} blocks"
        )


def check_seen(
    context: Context, pools: Mapping[HexId, PoolState], positions: Mapping[int, LpPosition], chain_id: int
) -> None:
    """What the Scout says it saw against what was read at that very block."""
    if context.chain_id != chain_id:
        raise Malformed(f"the context is of chain id {context.chain_id}, not {chain_id}")
    for pool_facts in context.scenes:
        if pools.get(pool_facts.pool.id) != pool_facts.pool:
            raise Malformed(f"pool {pool_facts.pool.id} was not so at block {context.block.number}")
        if pool_facts.position is not None and positions.get(pool_facts.position.id) != pool_facts.position:
            raise Malformed(f"position {pool_facts.position.id} was not so at block {context.block.number}")


def _decide_by_rules(context: Context, ready: PlanReady) -> Decision:
    """Who had to decide by the rules, and what."""
    rounds, last, claimed = ready.debate.rounds, ready.debate.rounds[-1], ready.decision
    after = choose_next_step(judge_proposal(last), len(rounds) - 1, context.max_rounds)
    caution = data_cautions(context)
    match after, claimed.decided_by:
        case NextStep.DECIDE, DecidedBy.CRITIC:
            return critic_decides(last, context.profile, doubts=caution)
        case NextStep.DEADLOCK, DecidedBy.ARBITER:
            return arbiter_decides(last, context.profile, doubts=caution, chosen=claimed.index)
        case _:
            raise Malformed(f"the {claimed.decided_by} ended a debate that was to {after} next")
