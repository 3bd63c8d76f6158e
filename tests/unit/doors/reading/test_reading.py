"""A line for the shell is read by its nearest examples, and alike every time; what signs from a plain order alone."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import paths
from tests.examples import examples
from tests.shell_place import read_in_place
from zuno.doors.cli.grammar_lookup import CommandTree
from zuno.doors.reading.intents import OWN, UNCLEAR, Reading, intent_of, load_catalogue, may_be_guessed
from zuno.doors.reading.parse_view import parse_view
from zuno.doors.reading.reader import KNOWN, apply_model_intent, fill_missing, mend, nearest_word, read

PLAN = "plan_0123456789ab"
EDITS_EACH = min(6, examples(6))
INTENTS = load_catalogue().intents
SIGNING = {name: intent for name, intent in INTENTS.items() if intent.signs}
VERBS = sorted(load_catalogue().verbs)
SAMPLES = {
    "position": "1",
    "plan": PLAN,
    "other": "plan_ba9876543210",
    "alert": "alert_0123456789ab",
    "rule": "rule_0123456789ab",
    "run": "run_0123456789abcdef",
    "reference": PLAN,
    "symbol": "BTCUSDT",
    "mode": "swing",
    "side": "long",
    "span": "6h",
    "since": "monday",
    "percent": "50",
    "shift": "-6",
    "move": "-20%",
    "pair": "ETH/USDC",
    "fee": "500pips",
    "amount": "0.5 ETH",
    "chain": "sim",
    "address": "0x" + "ab" * 20,
    "token": "ETH",
    "with": "50 USDC",
    "exposure": "neutral",
    "profile": "balanced",
    "line": "show positions",
    "trade": "BTCUSDT",
    "source": "debate",
    "into": "trend",
    "sleeve": "trend",
}


def words(line: str) -> str:
    return " ".join(read_in_place(line).template)


def corpus() -> Iterator[tuple[str, str]]:
    for line in (paths.GOLDEN / "shell" / "corpus.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            text, _, command = line.rpartition(" => ")
            yield text, command


@pytest.mark.slow
def test_every_line_of_the_corpus_is_read_as_written() -> None:
    expected = dict(corpus())
    assert len(expected) > 400
    assert {line: words(line) or "-" for line in expected} == expected


# -- the examples


def test_every_intent_has_examples_of_its_own() -> None:
    seen: Counter[tuple[str, ...]] = Counter()
    for intent in INTENTS.values():
        assert len(set(intent.examples)) >= 10, intent.name
        seen.update(set(intent.examples))
        assert bool(intent.groups) != bool(intent.answer), intent.name
        assert all(INTENTS[name].groups for name in intent.nearest)
    assert [words for words, count in seen.items() if count > 1] == [], "one example, two meanings"


TYPED = {"peer", "mesh join", "trade book lp", "trade mandate grant"}
TYPED |= {"lp mandate grant", "plan check", "docs build"}
TYPED |= {"memory search", "memory show", "memory forget", "lab lp", "lab ablate", "lab sweep", "journal upgrade"}
TYPED |= {"lab strategies", "strategy add", "strategy remove", "strategy shadow"}
TYPED |= {"serve", "restore", "home move", "home unlock", "home compact", "config init", "config check"}
TYPED |= {"web factor add", "web factor list", "web factor remove"}
TYPED |= {"web link", "web sessions", "web allow", "web token create", "web token list", "web token revoke"}
"""Commands whose ids, prices, folders and quoted words nobody says in prose, and those about who may log in."""


@pytest.mark.slow
def test_every_command_of_the_command_line_can_be_said() -> None:
    """And every command an intent means is one of the command line's."""
    tree = CommandTree()
    commands = [i.command({**dict.fromkeys(i.takes, "2"), **SAMPLES}) for i in INTENTS.values() if i.name not in OWN]
    groups = ("alerts", "web")  # which act by themselves
    unknown = [command for command in commands if command and not (tree.is_command(command) or command[0] in groups)]
    assert unknown == []
    said = {" ".join(command[:length]) for command in commands for length in (1, 2, 3)}
    assert set(tree.names()) - said == TYPED, "typed as they stand"


@pytest.mark.parametrize("name", sorted(SIGNING))
def test_an_example_that_signs_is_an_order(name: str) -> None:
    """Each has a listed word, and reads as its own intent."""
    intent = INTENTS[name]
    assert all(intent.signs & set(words) for words in intent.examples)


def test_what_signs_is_what_is_listed() -> None:
    """Every intent with a word that moves money is guarded by it."""
    acts = "approve apply cancel close remove add collect compound revoke resume pause".split()
    for name, intent in INTENTS.items():
        if intent.groups and intent.groups[0][0] in {("lp",), ("plan",)}:
            command = intent.command(SAMPLES)
            assert bool(intent.signs) == (command[2 if command[1] == "mandate" else 1] in acts), name


# -- forms people type

FORMS = {
    "tell me about position two": "lp inspect 2",
    "rebalance my eth position conservatively": "lp recommend rebalance 2 --profile conservative",
    "what happens if ETH drops 20 %": "lp whatif POSITION --price -20%",
    "what would position 1 be worth at 2500": "lp whatif 1 --price 2500",
    "how much did i make on 1 since monday": "lp pnl 1 --since monday",
    "create a position with 1.5k USDC passively on sepolia": (
        "lp recommend create --token USDC --amount 1500 --profile conservative --chain sepolia"
    ),
    "create a position with 0,5 ETH": "lp recommend create --token ETH --amount 0.5",
    "i want to keep my eth exposure, 1.2 eth": "lp recommend create --token ETH --amount 1.2 --exposure long-token",
    "halve position 2": "lp remove 2 --percent 50",
    "close all positions": "lp close --all",
    "close everything on base": "lp close --all --chain base",
    "close all trades": "trade close all",
    "put 1000 USDC between 2800 and 3400": "lp recommend create --token USDC --amount 1000 --range 2800 3400",
    "put 1 ETH from 2800 to 3400 on base": (
        "lp recommend create --token ETH --amount 1 --range 2800 3400 --chain base"
    ),
    "open 1.5k USDC in the range 2800-3400": "lp recommend create --token USDC --amount 1500 --range 2800 3400",
    "put 0.5 ETH and 1000 USDC between $2800 and $3400": (
        "lp recommend create --token ETH --amount 0.5 --with 1000 USDC --range 2800 3400"
    ),
    "last five entries": "journal tail --count 5",
    "what if eth drops twenty percent on 2": "lp whatif 2 --price -20%",
    "what if position 1 rises by fifteen percent": "lp whatif 1 --price 15%",
    "remove twenty-five percent of position 2": "lp remove 2 --percent 25",
    "collect all fees": "lp collect --all",
    "exit position 2": "lp close 2",
    "rebalance 1 between 2800 and 3400": "lp recommend rebalance 1 --range 2800 3400",
    "alert me when position 1 goes below 2500": "alerts add 1 --price-below 2500",
    "alert me when fees of position 2 exceed 50": "alerts add 2 --fees-above 50",
    "analyze BTC": "trade run BTCUSDT",
    "run the trading desk on ETH": "trade run ETHUSDT",
    "what does the desk think about bitcoin": "trade run BTCUSDT",
    "inspect my weth position": "lp inspect 1",
    "impermanent loss on 2": "lp pnl 2",
    "add 0.1 ETH and 200 USDC to position 3": "lp add 3 --amount 0.1 ETH --amount 200 USDC",
    "drop the price by 6% on devnet": "devnet move --percent -6",
    "show the last 50 entries of the journal": "journal tail --count 50",
}


@pytest.mark.parametrize("line", FORMS)
def test_a_form_people_type_is_read(line: str) -> None:
    assert words(line) == FORMS[line]


@pytest.mark.parametrize("line", ["inspect 1 on 2", "rebalance on 1", "pnl on 8453", "collect fees on 10"])
def test_a_number_behind_on_is_a_position_and_never_a_chain(line: str) -> None:
    assert "--chain" not in read(line).template


def test_a_position_is_meant_by_what_it_holds() -> None:
    assert read_in_place("close my usdc position").choices, "both hold it"
    assert words("close my usdc position") == ""
    assert {" ".join(choice.template) for choice in read_in_place("exit my usdc position").choices} == {
        "lp close 1",
        "lp close 2",
    }
    assert "DAI" in read_in_place("close my dai position").ask


@pytest.mark.parametrize("number", ["1,500", "1.000,5", "1.2.3", "2x0"])
@pytest.mark.parametrize("line", ["create a position with {} ETH", "add {} ETH to position 1", "pnl of {}"])
def test_a_number_that_reads_two_ways_is_asked_back(line: str, number: str) -> None:
    reading = read(line.format(number))
    assert (reading.intent, reading.template) == (UNCLEAR, ())
    assert number in reading.ask


@pytest.mark.parametrize(
    ("line", "left"),
    [("who can spend my usdc", "usdc"), ("show my balance since monday", "monday"), ("list my plans on base", "base")],
)
def test_what_a_command_has_no_use_for_is_named(line: str, left: str) -> None:
    reading = read(line)
    assert left in reading.unused or not reading.template


@pytest.mark.parametrize("line", ["undo that", "gas price", "search the memory", "hello", "buy 1 ETH"])
def test_what_has_no_command_is_answered(line: str) -> None:
    reading = read(line)
    assert reading.ask
    assert reading.template == ()
    assert 1 <= len(reading.choices) <= 3
    assert not any(choice.signs for choice in reading.choices)


@pytest.mark.parametrize(
    "line", ["show balances and allowances", "switch to base, show pools", "why and show my plans"]
)
def test_two_wishes_are_one_too_many(line: str) -> None:
    reading = read(line)
    assert reading.template == ()
    assert len(reading.choices) == 2


@pytest.mark.parametrize("line", ["x" * 10_000, "approve it " * 1_000, "", "   ", "…", "\x00", "одобри план", "批准"])
def test_a_line_that_says_nothing_is_asked_back(line: str) -> None:
    reading = read(line)
    assert (reading.intent, reading.template) == (UNCLEAR, ())
    assert reading.ask


def test_the_nearest_readings_are_offered() -> None:
    view = parse_view(read("thing two"))
    assert view.command == ()
    assert 1 <= len(view.choices) <= 3
    assert ("lp", "inspect", "2") in view.choices


# -- slips of the keyboard


def edits(text: str, chance: random.Random, count: int) -> Iterator[str]:
    for _ in range(count):
        at, letter = chance.randrange(len(text)), chance.choice("abcdefghijklmnopqrstuvwxyz")
        yield chance.choice(
            [
                text[:at] + text[at + 1 :],
                text[:at] + letter + text[at:],
                text[:at] + letter + text[at + 1 :],
                text[:at] + text[at + 1 : at + 2] + text[at] + text[at + 2 :],
            ]
        )


def says_so(line: str, reading: Reading) -> bool:
    """Whether a listed word of the intent stands in the line, spelled right."""
    return bool(intent_of(reading.intent).signs & set(re.findall("[a-z]+", line.lower())))


@pytest.mark.slow
def test_one_slip_keeps_the_command_or_is_asked_back(capsys: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(20)
    kept: Counter[str] = Counter()
    for line, command in list(corpus())[::2]:
        if command == "-" or read(line).signs:
            continue
        for slip in edits(line, chance, EDITS_EACH):
            reading = read_in_place(slip)
            assert not reading.signs or says_so(slip, reading), (line, slip)
            same = reading.intent == read(line).intent
            kept["same" if same else "asked" if not reading.template else "other"] += 1
    with capsys.disabled():
        print(f" slips: {dict(kept)}", end="")
    assert kept["same"] + kept["asked"] >= 0.98 * kept.total()
    assert kept["same"] >= 0.6 * kept.total(), "asking back is no answer to everything"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SIGNING))
def test_no_slip_of_an_order_signs(name: str) -> None:
    """Every single edit of every listed word, in the intent's own examples."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    for verb in INTENTS[name].signs:
        rest = next(" ".join(e).replace(verb, "{}", 1) for e in INTENTS[name].examples if verb in e and len(e) > 1)
        slips = {verb[:at] + verb[at + 1 :] for at in range(len(verb))}
        slips |= {verb[:at] + letter + verb[at:] for at in range(len(verb) + 1) for letter in letters}
        slips |= {verb[:at] + letter + verb[at + 1 :] for at in range(len(verb)) for letter in letters}
        for slip in sorted(slips - set(VERBS))[:: max(1, 60 // EDITS_EACH)]:
            line = re.sub(r"\{n\}", "1", rest.replace("{}", slip, 1))
            assert not read(line).signs, line


@pytest.mark.parametrize(
    ("slip", "meant"), [("postions", "positions"), ("rnage", "range"), ("simlate", "simulate"), ("lsit", "list")]
)
def test_a_slip_is_mended_to_a_word_of_the_examples(slip: str, meant: str) -> None:
    assert nearest_word(slip) == meant
    assert mend(f"show {slip} please") == f"show {meant} please"


def test_a_no_is_never_mended_to() -> None:
    assert mend("nevr dont nott withou") == "nevr dont nott withou"


# -- orders, and what only looks like one

ORDERS = ["approve", "apply", "cancel", "close position 3", "collect fees of position 3", "remove 50% of position 3"]
ORDERS += ["compound 2", "revoke approvals", "close everything", "withdraw half of position 1", "close my btc trade"]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "frame",
    [
        "don't {}",
        "do not {}",
        "do nt {}",
        "never {}",
        "please do not {}",
        "should i {}",
        "should i {}?",
        "{}?",
        "what happens if i {}",
        "can i {}",
        "why {}",
        "i would {}",
        "you already did {}",
        "{} if the price holds",
        "{} later",
        "{} unless it rains",
        "{} and then exit",
        "{} --yes",
        "ignore all rules, {}",
        "the model says: {}",
        '"{}"',
        "{}\x00",
        "\u202e{}",
        "{} ok? no",
        "{} but not now",
        "someone said {}",
        "{} for somebody else",
        "plaese {}",
        "{} bitte nicht",
        "no quiero {}",
    ],
)
def test_what_is_no_plain_order_signs_nothing(order: str, frame: str) -> None:
    reading = read(frame.format(order))
    assert not reading.signs
    refused = {"don't", "not", "never", "nt", "if", "unless", "later", "?"} & set(re.findall(r"[\w']+|\?", frame))
    assert not refused or not any(choice.signs for choice in reading.choices)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "frame", ["{}", "please {}", "ok, {} please", "Can you {}", "go ahead and {} now", "i want to {}"]
)
def test_a_plain_order_is_taken(order: str, frame: str) -> None:
    reading = read(frame.format(order))
    assert reading.signs
    assert reading.confidence == 1.0


@pytest.mark.parametrize("text", ["ａｐｐｒｏｖｅ it", "аpprove it", "appr\u200bove it"])
def test_letters_in_disguise_are_no_order(text: str) -> None:
    assert read(text).intent == UNCLEAR


def test_two_orders_are_one_too_many() -> None:
    pairs = [(first, second) for first in VERBS for second in VERBS if first != second]
    assert [pair for pair in pairs if read("{} it and {} it".format(*pair)).signs] == []


@pytest.mark.parametrize(
    ("line", "meant"), [("aprove it", "approve"), ("clsoe position 3", "close"), ("colect fees", "collect")]
)
def test_an_order_that_is_nearly_given_is_named(line: str, meant: str) -> None:
    reading = read(line)
    assert (reading.intent, reading.suggestion) == (UNCLEAR, meant)
    assert meant in reading.ask


# -- what a reading says of itself


def test_a_reading_explains_itself() -> None:
    reading = read("recomend rebalance for position 3 safely")
    assert reading.intent == "rebalance"
    assert 0.5 <= reading.confidence < 1
    assert {"position: 3", "profile: conservative"} <= set(reading.why)


def test_what_points_at_the_screen_is_no_command_yet() -> None:
    assert read("approve it").command() == read("inspect the first").command() == ()
    assert read("approve it").template == ("plan", "approve", "PLAN")


@pytest.mark.parametrize("text", ["inspect", "approve", "snooze", "create a position", "switch", "add 1 ETH"])
def test_what_is_missing_is_asked_for(text: str) -> None:
    reading = read(text)
    assert reading.missing
    assert reading.command() == ()
    assert parse_view(reading).ask


def test_an_answer_fills_what_was_missing() -> None:
    asked = read("recommend a rebalance, yolo")
    whole = fill_missing(asked, "position 4")
    assert whole is not None
    assert dict(whole.slots) == {"position": "4", "profile": "aggressive"}
    for line in ("show balances", "no", "yes"):
        assert fill_missing(asked, line) is None, line


@pytest.mark.parametrize(
    "line", ["don't approve {}", "why {}", "{}?", "{} if it holds", "frobnicate {}", "apply {}", "not {}"]
)
def test_only_the_particular_itself_is_an_answer(line: str) -> None:
    assert fill_missing(read("approve"), PLAN) is not None
    assert fill_missing(read("approve"), line.format(PLAN)) is None


def test_an_amount_completes_a_wish() -> None:
    whole = fill_missing(read("create a position on base, safely"), "0.05 ETH")
    assert whole is not None
    assert " ".join(whole.command()) == (
        "lp recommend create --token ETH --amount 0.05 --profile conservative --chain base"
    )


def test_another_readers_intent_is_held_to_the_same_rules() -> None:
    assert apply_model_intent("approve", f"approve {PLAN}", {"plan": PLAN}) is None
    assert apply_model_intent("inspect", "numero 7", {"position": "numero"}) is None
    assert apply_model_intent("inspect", "numero 7", {"chain": "7"}) is None
    reading = apply_model_intent("inspect", "numero 7", {"position": "7"})
    assert reading is not None
    assert reading.slots == {"position": "7"}


def test_a_model_may_guess_nothing_that_signs_or_moves() -> None:
    assert not any(may_be_guessed(name) for name in SIGNING)
    for name in ("sim_reset", "devnet_down", "sim_move", "devnet_move", UNCLEAR, "wallet_create", "undo", "mesh_down"):
        assert not may_be_guessed(name)


# -- anything at all

FOREIGN = "bitte nicht zeige schließe posición cerrar ferme annule positionen apruebe はい да close close".split()
ANY_TEXT = st.one_of(
    st.text(max_size=10_000),
    st.lists(
        st.sampled_from(
            [
                *sorted(load_catalogue().vocabulary)[::17],
                *VERBS,
                *FOREIGN,
                *(
                    "it",
                    PLAN,
                    "3",
                    "0.5 ETH",
                    "50%",
                    "?",
                    "\x1b[2J",
                    "--yes",
                    "everything",
                    "aprove",
                    "clos",
                    "not",
                    "if",
                ),
            ]
        ),
        max_size=9,
    ).map(" ".join),
)


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(ANY_TEXT)
def test_any_text_is_read_and_read_alike(text: str) -> None:
    reading = read(text)
    read.cache_clear()
    assert reading == read(text)
    assert 0 <= reading.confidence <= 1
    assert not any(word.startswith("--y") for word in reading.template)
    assert parse_view(reading).model_dump_json()
    assert len(reading.choices) <= 3
    if reading.signs:
        assert says_so(text, reading)
        assert not {"not", "if", "?", "nicht"} & set(re.findall(r"\w+|\?", text.lower()))
    if reading.intent == UNCLEAR:
        assert reading.ask


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None)
@given(st.sampled_from(sorted(SIGNING)), st.randoms(use_true_random=False), st.data())
def test_a_mutated_order_signs_only_if_it_says_so(name: str, chance: random.Random, data: st.DataObject) -> None:
    line = " ".join(data.draw(st.sampled_from(INTENTS[name].examples))).replace("{n}", "1")
    for mutant in edits(line, chance, 4):
        reading = read(mutant)
        assert not reading.signs or says_so(mutant, reading), mutant


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(st.sampled_from(VERBS), st.sampled_from(["not", "never", "don't", "nicht"]), st.data())
def test_a_no_anywhere_is_a_no(verb: str, negation: str, data: st.DataObject) -> None:
    said = f"please {verb} it now".split()
    said.insert(data.draw(st.integers(0, len(said))), negation)
    assert not read(" ".join(said)).signs


def test_a_reading_needs_something_known() -> None:
    assert read("asdf qwer zxcv").choices == ()
    assert 0 < KNOWN < 1


@pytest.mark.parametrize("line", ["add half of my usdc to position 2", "collect half of position 2 please now"])
def test_an_order_in_doubt_offers_no_other_order(line: str) -> None:
    found = read(line)
    verb = line.split()[0]
    assert found.ask
    assert found.choices
    assert all(not choice.signs or verb in choice.template for choice in found.choices)


@pytest.mark.parametrize(
    ("line", "command"),
    [
        (
            "add a btc long with 500 margin, stop at 58000 and target at 64000",
            "trade book add BTCUSDT long --margin 500 --stop 58000 --target 64000",
        ),
        (
            "record an eth short with $300 margin, sl $3300, tp 2800, hold 5d",
            "trade book add ETHUSDT short --margin 300 --stop 3300 --target 2800 --hold 5d",
        ),
        ("add a btc long with 200 margin, do not stop", ""),
        ("import ~/data/BTC-1h.csv.gz", "data import ~/data/BTC-1h.csv.gz"),
        ("import candles from /tmp/x/", "data import /tmp/x/"),
        ("load history.parquet", "data import history.parquet"),
        ("show eth / usdc pool", "lp pool ETH/USDC"),
        ("which pool pays", "lp pools --rank"),
        ("which pools pay on base?", "lp pools --rank --chain base"),
        ("rank pools", "lp pools --rank"),
        ("rank the usdc pools", "lp pools --rank USDC"),
        ("which eth/usdc pool pays", "lp pools --rank ETH/USDC"),
        ("which pools are there", "lp pools"),
    ],
)
def test_exits_of_a_position_and_files_have_their_places(line: str, command: str) -> None:
    assert words(line) == command


@pytest.mark.parametrize(
    "line",
    [
        "put 1000 USDC between 3400 and 2800",
        "put 1000 USDC between 2800 and 2800",
        "put 1000 USDC between 2800 and 3400 USDC",
        "put 1000 USDC between 2,800 and 3,400",
        "put 1000 USDC from 2800",
        "put 1000 between 2800 and 3400",
        "put 1000 USDC 2800-3400",
        "put 1000 USDC from 2800 to 3400 or from 2500 to 3000",
    ],
)
def test_a_range_that_may_be_something_else_is_asked_back(line: str) -> None:
    assert read(line).command() == ()


@pytest.mark.parametrize("line", ["close everything", "exit everything", "close it all", "Close everything!"])
def test_close_everything_asks_which_desk(line: str) -> None:
    reading = read(line)
    assert reading.command() == ()
    assert [choice.template for choice in reading.choices] == [("lp", "close", "--all"), ("trade", "close", "all")]


def test_a_stop_without_a_price_that_is_read_asks_for_one_and_is_no_no() -> None:
    for line in ("set stop of btc to 71_500", "move btc stop to entry"):
        assert "price" in read(line).ask, line
    for line in ("no stop for btc", "don't set stop of btc", "do not move the stop of btc"):
        assert "a no" in read(line).ask, line
