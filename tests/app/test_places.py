"""Questions in addresses and in a history, rules that are lifted, margins; and the page's labels in every language."""

from __future__ import annotations

import string
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import parse_qsl

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from treefocus import InvalidInput, loans, refits
from treefocus.app.address import take_query, to_query
from treefocus.app.demo import demo_service
from treefocus.app.page.words import LANGUAGES, words
from treefocus.app.question import ExplainOptions
from treefocus.app.rows import find
from treefocus.app.service import Service
from treefocus.app.visit import DOWN, FIXED, FREE, TYPED, EarlierQuestion, Visit
from treefocus.app.workers import Errand
from treefocus.constraints.kinds import AtMost, Fixed, Range
from treefocus.problem.plausibility import LocalOutlierFactor
from treefocus.render.phrases import languages
from treefocus.tables.table import as_table


@pytest.fixture(scope="module")
def service() -> Service:
    return demo_service()


def other_rules(visit: Visit) -> None:
    visit.rules[2].low, visit.rules[2].high, visit.rules[3].moves = 1000.5, None, FIXED
    visit.more += "at most 3 changes\nloan_amount <= 2 * income\n"


def other_wish(visit: Visit) -> None:
    visit.wish.label, visit.wish.percent = "declined", 62.5


def other_promise(visit: Visit) -> None:
    visit.hold = 0.875


def other_room(visit: Visit) -> None:
    visit.room = "above 20%, below 5%"


def no_promise(visit: Visit) -> None:
    visit.hold = None


def no_wish(visit: Visit) -> None:
    visit.wish.label = None


def other_search(visit: Visit) -> None:
    visit.distance, visit.n_ways, visit.time_limit, visit.language, visit.is_rounded = "cosine", 3, 2.5, "de", False


def other_measure(visit: Visit) -> None:
    visit.weights[4], visit.measure, visit.most = 2.5, LocalOutlierFactor(), 1.25


def no_rules(visit: Visit) -> None:
    visit.free_all()


@pytest.mark.parametrize(
    "change",
    [other_rules, other_wish, no_wish, other_promise, no_promise, other_room, other_search, other_measure, no_rules],
)
def test_a_question_survives_the_way_through_an_address(service: Service, change: Callable[[Visit], None]) -> None:
    visit = Visit.begin(service)
    visit.pick(17)
    change(visit)
    again = Visit.begin(service)
    take_query(again, dict(parse_qsl(to_query(visit), keep_blank_values=True)))
    assert again.question() == visit.question()
    assert (again.number, again.label, again.language, again.is_rounded) == (
        17, 17, visit.language, visit.is_rounded,
    )  # fmt: skip
    assert to_query(again) == to_query(visit)


def test_a_new_visit_is_only_its_row_and_a_typed_row_is_nothing(service: Service) -> None:
    visit = Visit.begin(service)
    assert to_query(visit) == f"row={visit.number}"
    visit.type_in(np.arange(12.0) + 0.123)
    assert visit.label == TYPED
    assert to_query(visit) == ""


def test_an_address_that_cannot_be_read_changes_nothing(service: Service) -> None:
    visit = Visit.begin(service)
    before = to_query(visit)
    wrong = {
        "row": "99999999", "want": "maybe", "p": "much", "from": "a", "distance": "crow", "ways": "many",
        "seconds": "1e9", "hold": "1.5", "room": "much", "lang": "tlh",
        "rules": "incme fixed; <script>", "weights": "incme:2", "like": "what:1",
        "other": "x",
    }  # fmt: skip
    take_query(visit, wrong)
    assert to_query(visit) == before
    take_query(visit, {"row": "-1", "ways": "1000"})
    assert visit.number != -1
    assert visit.n_ways == 5


def test_rules_are_lifted_one_by_one(service: Service) -> None:
    visit = Visit.begin(service)
    other_rules(visit)
    for constraint in (Fixed("age"), Range("income", 1000.5), AtMost(3)):
        visit.lift(constraint)
    age, income = (loans.SCHEMA.index(name) for name in ("age", "income"))
    assert visit.rules[age].moves == FREE
    assert visit.rules[income].low is None
    assert visit.more == "loan_amount <= 2 * income\n"
    assert visit.rules[loans.SCHEMA.index("loan_amount")].moves == DOWN  # the others stay


def test_every_margin_is_kept_and_costs_more(service: Service) -> None:
    visit = Visit.begin(service)
    assert visit.can_be_safer
    smallest, *safer, holding = service.safer(visit.row, visit.question(), visit.promise, Errand(), visit.label)
    approved = service.classes.index("approved")
    assert (smallest.percent, smallest.hold, smallest.found[0].price) == (None, None, 1.0)
    assert [offer.percent for offer in safer] == [60, 70, 80, 90]
    prices = [1.0]
    for offer in safer:
        one = offer.found[0]
        shares = service.predict(offer.found.points).probabilities[0]
        assert shares is not None
        assert shares[approved] >= offer.percent / 100
        assert one.held is None  # no models were trained again
        prices.append(one.price)
    assert prices == sorted(prices)
    assert holding.hold == visit.hold == 0.95
    found = service.answer(visit.row, visit.question(), Errand(), visit.label)
    assert found[0].price == holding.found[0].price > 1
    assert "times the smallest change" in found[0].to_text()


def test_people_are_answered_in_round_numbers_with_a_margin(service: Service) -> None:
    visit = Visit.begin(service)
    visit.found = service.answer(visit.row, visit.question(), Errand(), visit.label)
    (shown,) = visit.ways
    assert "These are round numbers." in shown.to_text()
    assert shown.is_demanding
    assert shown.price is not None
    assert shown.price >= visit.found[0].price
    assert visit.shown is visit.shown  # worked out once
    visit.is_rounded = False
    assert visit.shown is visit.found
    visit.wish.percent = 70.0  # which is a margin itself
    assert visit.question().hold is None
    found = service.answer(visit.row, visit.question(), Errand(), visit.label)
    assert found[0].price > 1
    visit.wish.percent, visit.hold = None, None
    assert service.answer(visit.row, visit.question(), Errand(), visit.label)[0].price is None


def test_there_is_room_to_move_where_it_is_asked_for(service: Service) -> None:
    visit = Visit.begin(service)
    visit.hold, visit.is_rounded, visit.room = None, False, "above inf"
    visit.found = service.answer(visit.row, visit.question(), Errand(), visit.label)
    assert "at least" in visit.ways[0].to_text()
    assert "as far as the values go" in visit.ways[0].to_text()
    assert all(
        "as far as the values go" in offer.found[0].to_text()
        for offer in service.safer(visit.row, visit.question(), None, Errand(), visit.label)[:2]
    )
    visit.room = "a lot"
    with pytest.raises(InvalidInput, match="tolerance must be text such as 'above 20%, below 5%'"):
        visit.question()


def test_where_models_were_trained_again_every_answer_says_how_many_agree(refitted: Service) -> None:
    visit = Visit.begin(refitted)
    found = refitted.answer(visit.row, visit.question(), Errand(), visit.label)
    agree, n_models = found[0].held
    assert n_models == 3
    assert 0 <= agree <= n_models
    assert f"The answer holds for {agree} of 3 models" in found[0].to_text()
    assert refitted.in_round_numbers(found)[0].held[1] == 3
    offers = refitted.safer(visit.row, visit.question(), visit.promise, Errand(), visit.label)
    assert all(offer.found[0].held[1] == 3 for offer in offers if offer.found[0].status.has_answer)
    plain = refitted.answer(visit.row, replace(visit.question(), hold=None), Errand(), visit.label)
    assert plain[0].held[0] <= agree


def test_another_pool_makes_another_service(refitted: Service) -> None:
    asked = ExplainOptions(target="approved", hold=0.8)
    X, _ = loans.load()
    rows = as_table(X[:20], "rows")
    made = Service(refitted.forest, X[:400], rows, schema=loans.SCHEMA, asked=asked)
    again = Service(
        refitted.forest, X[:400], rows, schema=loans.SCHEMA, asked=asked, refits=[loans.forest()] * 3,
    )  # fmt: skip
    assert Visit.begin(made).hold == 0.8
    assert made.identity != again.identity


@pytest.fixture(scope="module")
def refitted() -> Service:
    """Of a model that is trained again when the service begins."""
    X, y = loans.load()
    model = RandomForestClassifier(10, max_depth=4, random_state=0).fit(X[:400], y[:400])
    others = refits(model, X[:400], y[:400], n=12)
    asked = ExplainOptions(target="approved", constraints=loans.CONSTRAINTS)
    return Service(model, X[:400], as_table(X[400:440], "rows"), schema=loans.SCHEMA, asked=asked, refits=others)


def test_an_earlier_question_comes_back_whole(service: Service) -> None:
    visit = Visit.begin(service)
    visit.pick(5)
    visit.found = service.explain(visit.row, visit.question(), labels=[5])
    kept, before = EarlierQuestion.of(visit, "Row 5", to_query(visit)), visit.question()
    assert kept.name.startswith("Row 5 → approved ≥ 95% manhattan (")
    other_rules(visit)
    other_wish(visit)
    visit.pick(9)
    kept.restore(visit)
    assert visit.question() == before
    assert (visit.number, visit.label) == (5, 5)
    visit.rules[0].moves = FREE
    kept.restore(visit)
    assert visit.question() == before  # what is kept is not the visitor's to change


def test_rows_with_names_of_their_own_are_found_and_called_by_them() -> None:
    demo = demo_service()
    rows = as_table(demo.rows.values[:30], "rows")
    named = Service(demo.forest, rows, rows, schema=loans.SCHEMA, asked=demo.asked, ids=[f"A-{i}" for i in range(30)])
    assert find(named, "A-7") == [7]
    assert named.name_of(7) == "7 (A-7)"
    visit = Visit.begin(named)
    visit.pick(7)
    assert visit.label == "7 (A-7)"
    assert service_label(named, visit) == "7 (A-7)"
    with pytest.raises(Exception, match="ids must be a name for each of the 30 rows, got 2"):
        Service(demo.forest, rows, rows, schema=loans.SCHEMA, ids=["a", "b"])


def service_label(service: Service, visit: Visit) -> object:
    return service.explain(visit.row, visit.question(), labels=[visit.label])[0].label


def test_every_language_has_every_label_with_the_same_places() -> None:
    assert set(LANGUAGES) == set(languages())
    english = words("en")
    for language in LANGUAGES:
        own = words(language)
        assert own.keys() == english.keys()
        for key, text in own.items():
            assert text.strip(), (language, key)
            assert _places(text) == _places(english[key]), (language, key)
    assert words("tlh") == english


def _places(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}
