"""Fields of views that no door shows, by the view's class: `Part.field` is left out of one answer alone."""

from typing import Final

LEFT_OUT: Final[dict[str, frozenset[str]]] = {
    name: frozenset(fields.split())
    for name, fields in {
        "AccountView": "exchanges marks recorded",
        "AlertEventView": "condition number said wallet",
        "AlertRuleView": "made_at wallet",
        "AlertView": "rule told_at wallet",
        "AlertsView": "dropped trouble",
        "AllowancesView": "AllowanceView.amount AllowanceView.spender",
        "AnomalyView": "as_of label rule",
        "ApprovalView": (
            "PoolKeyView.currency0 PoolKeyView.currency1 PoolKeyView.dynamic_fee PoolKeyView.fee "
            "PoolKeyView.hooks PoolKeyView.id PoolKeyView.tick_spacing asks exits"
        ),
        "ArmView": "carry_usd equity_usd moves",
        "zuno.trading.service.ledger_view.BalancesView": "assets",
        "zuno.lp.service.wallets.BalancesView": "BalanceView.amount",
        "BoundsView": "expires permit2_seconds",
        "CalibrationView": "difference",
        "CallView": "data gas_used least_in most_out to value",
        "CandidateView": "pool tick_lower tick_upper",
        "ChainLookView": "timestamp wallets",
        "ClosedPositionsView": (
            "ClosedPositionView.divergence_loss ClosedPositionView.gas ClosedPositionView.plan_id "
            "ClosedPositionView.swap_cost PoolKeyView.currency0 PoolKeyView.currency1 "
            "PoolKeyView.dynamic_fee PoolKeyView.fee PoolKeyView.hooks PoolKeyView.id "
            "PoolKeyView.tick_spacing wallet"
        ),
        "ClosedTradeView": "gross_pnl mode opened sleeve",
        "CollectedView": "rows",
        "CostView": "exceeds_moved gas percent stays_home_percent swap total unit",
        "DemoOpening": "before move pools",
        "CycleWhyView": (
            "LessonView.condition LessonView.expires LessonView.written MemoryView.setup RunView.as_of "
            "RunView.bundle_hash RunView.chart RunView.code RunView.live RunView.mode RunView.origin "
            "RunView.report RunView.run_id RunView.sources RunView.symbol RunView.trade_chart "
            "SourceView.age_seconds SourceView.as_of SourceView.feed SourceView.notes SourceView.rows "
            "SourceView.series SourceView.source SourceView.stale"
        ),
        "DataCheckView": "ok settled_before synthetic",
        "DataStatusView": "chosen_by live synthetic",
        "DeskRunView": "synthetic",
        "DeskStopView": "account",
        "DownloadView": "new ok since until",
        "EarlierView": "index pool tick_lower tick_upper",
        "EdgeView": "breakeven_hours cost",
        "EntryView": "bundle code key",
        "EvaluationView": "waiting",
        "ExecutionView": "LeftoverView.why expires wallet",
        "ExportView": "notes",
        "FactView": "as_of",
        "FactorView": "kind last_step made",
        "FactorsView": "FactorView.kind FactorView.last_step FactorView.secret wrong",
        "FeaturesView": "SourceView.feed SourceView.source",
        "FeeCoverView": "ci80 days fees_over_lvr measured_by pays",
        "StretchView": "first last",
        "FlowView": "amount currency",
        "ImportView": "changed new ok rows set_aside",
        "ImportedFileView": "incomplete layout reasons rows",
        "ImportedView": "first last unmade",
        "HomeView": "alerts jobs positions",
        "InspectView": (
            "PoolKeyView.currency0 PoolKeyView.currency1 PoolKeyView.dynamic_fee PoolKeyView.fee "
            "PoolKeyView.hooks PoolKeyView.tick_spacing amount0 amount1 fees0 fees1 pool_state"
        ),
        "LearnedTradeView": "first_touch trade",
        "LpAblationView": "desk ok",
        "LpLabView": "ok",
        "LpMandateView": (
            "above acts below chain chain_id exit exit_gas_per_day gas_per_day genesis granted in_a_crash least_gap "
            "mandate pair pools positions to unit wallet when_close_wins worst_percent worth_usd_per_day"
        ),
        "MarketCheckView": "ok seeds synthetic",
        "MarketRowView": "base contract_size kind",
        "MarketStudyView": "seeds synthetic",
        "MarketsView": "ok",
        "MemoriesView": "MemoryView.setup MemoryView.similarity",
        "MessageLine": "at kind sender to",
        "MoveView": "timestamp",
        "OwnShadowView": "name",
        "ParseView": "complete source suggestion text",
        "PeerEndView": "heard role said",
        "PeerView": "edition",
        "PerformanceView": (
            "EquityPointView.at EquityPointView.core_usd EquityPointView.drawdown_pct "
            "EquityPointView.hold_usd ProfitRowView.name exchanges marks recorded"
        ),
        "PingView": "silent",
        "PlanView": (
            "PoolKeyView.currency0 PoolKeyView.currency1 PoolKeyView.dynamic_fee PoolKeyView.fee "
            "PoolKeyView.hooks PoolKeyView.id PoolKeyView.tick_spacing hash timestamp"
        ),
        "PnlView": (
            "PoolKeyView.currency0 PoolKeyView.currency1 PoolKeyView.dynamic_fee PoolKeyView.fee "
            "PoolKeyView.hooks PoolKeyView.id PoolKeyView.tick_spacing fees0 fees1 from_block gas_valued "
            "gas_wei to_block"
        ),
        "PoolMoveView": "id",
        "PoolRegimeView": "why",
        "PoolView": "fee protocol_fee sqrt_price_x96",
        "PoolRankingView": (
            "PoolKeyView.currency0 PoolKeyView.currency1 PoolKeyView.dynamic_fee PoolKeyView.fee PoolKeyView.hooks "
            "PoolKeyView.tick_spacing RankedPoolView.measured_by"
        ),
        "PoolsView": (
            "PoolView.block PoolView.chain PoolView.currency0 PoolView.currency1 PoolView.hooks PoolView.id "
            "PoolView.tick_spacing PoolView.timestamp"
        ),
        "PortfolioPositionView": "block how mean_worth position_ids quote timestamp wallet window_hours",
        "PortfolioTotalsView": "mean_worth",
        "PortfolioPointView": "at worth",
        "PortfolioView": (
            "history PoolKeyView.currency0 PoolKeyView.currency1 PoolKeyView.dynamic_fee PoolKeyView.fee "
            "PoolKeyView.hooks PoolKeyView.id PoolKeyView.tick_spacing chains prices SummaryView.fees "
            "SummaryView.fees7d "
            "SummaryView.fee_apr SummaryView.fees7d_collected SummaryView.fees_collected SummaryView.lvr "
            "SummaryView.lvr7d SummaryView.net_apr SummaryView.uncollected SummaryView.young"
        ),
        "PositionView": "amount0 amount1 fees0 fees1",
        "PositionsView": (
            "PoolKeyView.currency0 PoolKeyView.currency1 PoolKeyView.dynamic_fee PoolKeyView.fee "
            "PoolKeyView.hooks PoolKeyView.id PoolKeyView.tick_spacing PositionView.block PositionView.chain "
            "PositionView.liquidity PositionView.owner PositionView.subscribed PositionView.tick "
            "PositionView.tick_lower PositionView.tick_upper PositionView.timestamp PositionView.edge_distance_percent "
            "SummaryView.fee_apr SummaryView.fees7d_collected SummaryView.fees_collected SummaryView.lvr "
            "SummaryView.lvr7d SummaryView.net_apr SummaryView.uncollected SummaryView.young"
        ),
        "PowerView": "smallest_edge smallest_edge_pct trades",
        "ProtectionView": "until",
        "RateView": "count total",
        "RecommendedView": "amount0 amount1 carry hedge index own reason stress verdict",
        "Reliability": "enough",
        "ReliabilityBin": "high low",
        "ReplayView": "request_id",
        "ReportRow": "kind",
        "RoleLine": "axl_peer_id",
        "RoundView": "FailingView.since answered at ok rows series",
        "RulingExecutionView": "intent",
        "RunLineView": "hash",
        "RunView": (
            "LessonView.condition LessonView.expires LessonView.written MemoryView.setup SourceView.notes "
            "SourceView.rows SourceView.series"
        ),
        "ServeEndView": "restarts",
        "ShockView": "further price",
        "SimulationView": (
            "PoolKeyView.currency0 PoolKeyView.currency1 PoolKeyView.dynamic_fee PoolKeyView.fee "
            "PoolKeyView.hooks PoolKeyView.id PoolKeyView.tick_spacing exits"
        ),
        "SourceOfRowsView": "first last rows",
        "SourceView": "as_of",
        "SpanView": "doubled first last used used_from",
        "SpeakerView": "round",
        "StatusView": "PartView.pid PartView.why",
        "StepView": "gas_cost nonce part words",
        "StoppedView": "ticks",
        "StrategyLabView": "ok",
        "StrategyRowView": "equity equity_hold",
        "StrategyTargetsView": "synthetic",
        "StressPointView": "in_range_share p10_hours p_exit24h",
        "SweepView": "ok",
        "SynthView": "last origin rows seed series synthetic",
        "TermsView": "exact",
        "ThoughtView": "speaker",
        "TradeArmView": "equity market_change",
        "TradeCalibrationView": "outcomes",
        "TradeLabView": "ok",
        "TradeOrderView": "average_price decision intent reduce_only time_in_force",
        "TradePositionView": "decision fees funding liquidation target_order",
        "TradeStatusView": (
            "ExchangeAnswer.asked_at ExchangeAnswer.exchange ExchangeAnswer.free ExchangeAnswer.total "
            "ExchangeAnswer.unbooked ExchangeAnswer.unknown MandateView.granted MandateView.judge_fallback "
            "MandateView.max_daily_loss_usd MandateView.max_margin_per_day_usd "
            "MandateView.max_margin_per_trade_usd MandateView.policy MandateView.sleeves MandateView.stops "
            "MandateView.symbols MandateView.venues MandatedSleeveView.max_drawdown MandatedSleeveView.name "
            "MandatedSleeveView.share RiskBookView.equity_usd marks recorded"
        ),
        "UnsignedView": "deadline state",
        "UpEndView": "restarts",
        "VenueListView": "read_at",
        "VetoScoreView": "regime resolved",
        "VetoTotals": "enough unfilled",
        "VetoesView": "outcomes",
        "WalletView": "address",
        "WalletsView": "acting",
        "WebLoginView": "client kind made seen",
        "WebLoginsView": "WebLoginView.token",
        "WhatIfView": (
            "PoolKeyView.currency0 PoolKeyView.currency1 PoolKeyView.dynamic_fee PoolKeyView.fee "
            "PoolKeyView.hooks PoolKeyView.id PoolKeyView.tick_spacing PriceCaseView.amount0 "
            "PriceCaseView.amount1 PriceCaseView.fees_worth PriceCaseView.hodl_worth amount0 amount1 "
            "deposited0_human deposited1_human"
        ),
        "WhyView": (
            "PoolKeyView.currency0 PoolKeyView.currency1 PoolKeyView.dynamic_fee PoolKeyView.fee "
            "PoolKeyView.hooks PoolKeyView.id PoolKeyView.tick_spacing hash messages timestamp"
        ),
        "LpDaysView": "by_minutes minutes ok stopped WideArmView.ci95",
    }.items()
}
