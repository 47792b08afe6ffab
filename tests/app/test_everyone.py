"""Everyone, on the page: bars are what the audit says, the people behind them are those, and a click leads to each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.pages import CHROMIUM, artefacts_folder, chromium, downloaded, settled, unfold, violations, visits
from support.servers import command
from treefocus import LocalOutlierFactor
from treefocus.app.demo import demo_service
from treefocus.app.everyone import Everyone, banded, everyone
from treefocus.app.rows import find
from treefocus.app.service import Service
from treefocus.app.visit import Visit
from treefocus.app.workers import Errand


@pytest.fixture(scope="module")
def service() -> Service:
    return demo_service()


@pytest.fixture(scope="module")
def seen(service: Service) -> Everyone:
    visit = Visit.begin(service)
    rows = find(service, predicted="declined")[:30]
    return everyone(service, rows, ["dependants", "income"], visit.question(), Errand())


def test_behind_every_bar_stand_its_people(service: Service, seen: Everyone) -> None:
    for bar, group in zip(seen.burdens(), (seen.audit.whole, *seen.audit.groups), strict=True):
        assert len(bar.rows) == group.helped
        assert set(bar.rows) <= set(seen.numbers.tolist())
    for bar in seen.features():
        asked = [seen.found[seen.numbers.tolist().index(i)] for i in bar.rows]
        assert all(bar.name in {change.feature for change in one.changes} for one in asked)
    assert seen.plan is not None
    for bar, action in zip(seen.actions(), seen.plan.actions, strict=True):
        assert len(bar.rows) == action.helped
    assert all(service.predictions.labels[i] == "declined" for i in seen.numbers.tolist())
    widths = [bar.width for bar in (*seen.burdens(), *seen.features(), *seen.actions())]
    assert 0 <= min(widths) <= max(widths) <= 1


def test_numbers_are_put_into_bands(service: Service, seen: Everyone) -> None:
    income = service.schema.names.index("income")
    labels = banded(seen.found, "income")
    values = seen.found.table.values[:, income]
    assert len(set(labels)) == 4
    assert max(labels.count(label) for label in set(labels)) <= len(labels) / 2
    order = [labels[i] for i in np.argsort(values, kind="stable")]
    assert len(dict.fromkeys(order)) == sum(a != b for a, b in pairwise(order)) + 1
    assert set(banded(seen.found, "dependants")) == set(seen.found.table.values[:, 1].astype(int).tolist())


def test_a_measure_of_likeness_leaves_actions_out(service: Service) -> None:
    visit = Visit.begin(service)
    visit.measure, visit.most = LocalOutlierFactor(limit=3.0), 3.0
    rows = find(service, predicted="declined")[:2]
    seen = everyone(service, rows, [], visit.question(), Errand())
    assert seen.plan is None
    assert seen.actions() == []
    assert len(seen.burdens()) == 1


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
class TestInTheBrowser:
    @pytest.fixture
    def page(self, tmp_path: Path) -> Iterator[Any]:
        with command("--demo", "--jobs", tmp_path / "jobs") as (_, client), chromium() as browser:
            address = str(client.base_url).rstrip("/")
            with visits(browser, address) as opened:
                yield opened()

    def test_from_the_audit_to_a_person(self, page: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
        unfold(page, "Audit by groups")
        page.get_by_label("People at most").fill("12")
        page.get_by_role("button", name="Audit everyone").click()
        page.get_by_text("Audited 12 people.").wait_for()
        page.get_by_role("button", name="People behind savings").click()
        person = page.get_by_role("button", name="Ask about row").first
        number = person.inner_text().strip()
        person.click()
        page.get_by_role("button", name=f"Pick row {number}").and_(page.locator("[aria-pressed=true]")).wait_for()
        assert "<svg" in downloaded(page, "Audit as a page")
        settled(page)
        page.locator("#everyone").screenshot(path=str(artefacts_folder(tmp_path_factory) / "everyone.png"))
        assert violations(page) == []
