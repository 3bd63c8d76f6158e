"""The order in which the nodes of a cycle wait for each other, run by LangGraph: nothing else here knows it."""

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from itertools import pairwise
from operator import or_
from typing import Annotated, Any, Final, Protocol, TypeAlias, TypedDict

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from zuno.kernel.canonical import Digest
from zuno.trading.model.cycle import Node

Step: TypeAlias = Callable[[], Awaitable[Digest]]
"""Does what a node does, puts it on record and names the record. Done again, it finds the first."""
Saver: TypeAlias = BaseCheckpointSaver[Any]

_PREPARING: Final = (Node.TRIAGE, Node.GENERATE_CHART)
"""Steps of the graph are barriers: in a step of its own the chart would keep everybody waiting."""
_EXPERTS: Final = (
    Node.META_AGENT,
    Node.LIQUIDITY_EXPERT,
    Node.MICROSTRUCTURE_EXPERT,
    Node.MACRO_EXPERT,
    Node.VLM_EXPERT,
)
_SEQUENTIAL: Final = (
    Node.BLACKBOARD_SYNTHESIS, Node.JUDGE_AGENT, Node.RISK_MANAGER, Node.PORTFOLIO_LEVERAGE_GUARD, Node.EXECUTE_TRADE,
    Node.GENERATE_REPORT, Node.DATA_SYNTHESIS,
)  # fmt: skip
_STEPS: Final[ContextVar[Mapping[Node, Step]]] = ContextVar("steps")
"""Of the run that is being conducted: each is a task of its own, and hands them to the tasks of its nodes."""


class GraphState(TypedDict):
    """Names alone: what they stand for is in the journal."""

    run: str
    said: Annotated[dict[str, str], or_]
    """Node → the hash of what it put on record."""


async def run_graph(run_id: str, steps: Mapping[Node, Step], saver: Saver | None) -> dict[Node, Digest]:
    """Take every step that was not taken yet, and return what each put on record. With a saver an interrupted run goes
    on after the last complete step; a step may be taken again. What a step raises is raised."""
    graph = _ORDER.copy({"checkpointer": saver})
    _STEPS.set(steps)
    begun = saver is not None and await saver.aget_tuple({"configurable": {"thread_id": run_id}}) is not None
    start: GraphState | None = None if begun else {"run": run_id, "said": {}}
    ended = await graph.ainvoke(
        start, {"configurable": {"thread_id": run_id}}, durability=None if saver is None else "sync"
    )
    return {Node(node): Digest(name) for node, name in ended["said"].items()}


def _compile_graph() -> CompiledStateGraph[GraphState, None, GraphState, GraphState]:
    graph = StateGraph(GraphState)
    for node in Node:
        graph.add_node(node.value, _make_action(node))
    # In plain text: a checkpoint names nothing of ours that would have to be made again.
    prepared, heard = ([node.value for node in nodes] for nodes in (_PREPARING, _EXPERTS))
    graph.add_edge(START, Node.COLLECT_DATA.value)
    graph.add_edge(Node.COLLECT_DATA.value, Node.CONTEXT_GATHERING.value)
    for preparing in prepared:
        graph.add_edge(Node.CONTEXT_GATHERING.value, preparing)
    for expert in heard:
        graph.add_edge(prepared, expert)
    # One edge from all five: an edge from each would run what follows twice.
    graph.add_edge(heard, _SEQUENTIAL[0].value)
    for before, after in pairwise(_SEQUENTIAL):
        graph.add_edge(before.value, after.value)
    graph.add_edge(_SEQUENTIAL[-1].value, END)
    return graph.compile()


class _Act(Protocol):
    def __call__(self, state: GraphState) -> Awaitable[dict[str, dict[str, str]]]: ...


def _make_action(node: Node) -> _Act:
    async def act(state: GraphState) -> dict[str, dict[str, str]]:
        return {"said": {node.value: await _STEPS.get()[node]()}}

    return act


_ORDER: Final = _compile_graph()
"""The same for every run, and nothing of any: it takes the library a while to look through it."""
