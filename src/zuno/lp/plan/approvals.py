"""What the contracts must be allowed before they may take the owner's tokens: exact amounts, for a short while."""

from collections.abc import Iterator

from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, Seconds
from zuno.lp.model.plan import Allows, Flow, Holds, Need, Permits, Step, StepKind
from zuno.lp.plan.calldata import approve, permit2_approve, wrap
from zuno.lp.plan.context import PlanContext, flows


def build_approvals(terms: PlanContext, spender: Address, outflows: tuple[Flow, ...]) -> tuple[Step, ...]:
    """The approvals that are missing for these outflows; what is allowed already is left as it is."""
    return tuple(step for flow in outflows if flow.currency != NATIVE for step in _allow(terms, spender, flow))


def list_allowance_needs(terms: PlanContext, spender: Address, outflows: tuple[Flow, ...]) -> tuple[Need, ...]:
    """The same as something to check before the tokens are taken."""
    tokens = [flow for flow in outflows if flow.currency != NATIVE]
    return (
        *(Allows(flow.currency, flow.amount) for flow in tokens),
        *(Permits(flow.currency, spender, flow.amount, terms.deadline) for flow in tokens),
    )


def build_revocations(terms: PlanContext, tokens: tuple[Address, ...]) -> tuple[Step, ...]:
    """Takes back what is still allowed of these tokens, after a plan that failed or was cancelled."""
    steps: list[Step] = []
    for token in tokens:
        if terms.allowances.to_permit2.get(token, 0):
            steps.append(_approve(terms, token, 0))
        for (granted, spender), grant in terms.allowances.grants.items():
            if granted == token and grant.amount:
                steps.append(_permit(terms, token, spender, 0, Seconds(0)))
    return tuple(steps)


def build_wrap_step(wrapper: Address, amount: int) -> Step:
    """Ether into the token that wraps it; the token is the wallet's at once."""
    needs, out, back = (Holds(NATIVE, amount),), flows((NATIVE, amount)), flows((wrapper, amount))
    return Step(StepKind.WRAP, wrapper, amount, wrap(), None, needs=needs, most_out=out, least_in=back)


def _allow(terms: PlanContext, spender: Address, flow: Flow) -> Iterator[Step]:
    token = flow.currency
    now = terms.allowances.to_permit2.get(token, 0)
    if now < flow.amount:
        if now:
            # USDT and its like refuse to change one allowance into another; nothing on chain tells which they are.
            yield _approve(terms, token, 0)
        yield _approve(terms, token, flow.amount)
    grant = terms.allowances.grant(token, spender)
    if grant.amount < flow.amount or grant.until < terms.deadline:
        yield _permit(terms, token, spender, flow.amount, Seconds(terms.now + terms.bounds.permit2_seconds))


def _approve(terms: PlanContext, token: Address, amount: int) -> Step:
    return Step(StepKind.APPROVE_PERMIT2, token, 0, approve(terms.deployment.permit2, amount), None)


def _permit(terms: PlanContext, token: Address, spender: Address, amount: int, until: Seconds) -> Step:
    data = permit2_approve(token, spender, amount, until)
    return Step(StepKind.PERMIT2_APPROVE, terms.deployment.permit2, 0, data, None)
