"""The answer: sentence, proof, table and bars; other ways out; and what can be taken home."""

from __future__ import annotations

import json
from html import escape

from nicegui import ui

from treefocus.app.page.desk import Desk
from treefocus.app.page.elements import button, heading, live, markup
from treefocus.app.page.pictures import changes, status
from treefocus.explanation.batch import Explanations
from treefocus.render.html import report
from treefocus.render.letter import TEMPLATES
from treefocus.render.phrases import catalogue
from treefocus.render.plain import plain

_NOTHING = "Pick a row, then press Explain: the smallest change that gets another answer stands here."


def build(desk: Desk) -> None:
    """The place where answers stand."""
    _Answer(desk)


class _Answer:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        with live():
            self._show()
        desk.when_answer_changes(self._show.refresh)

    @ui.refreshable_method
    def _show(self) -> None:
        """The answers, the closest first."""
        if self._desk.visit.found is not None:
            _answers(self._desk)
        else:
            ui.label(_NOTHING).classes("tf-faint")


def _answers(desk: Desk) -> None:
    visit = desk.visit
    assert visit.found is not None
    ways = visit.ways
    for k, one in enumerate(ways):
        with ui.element("article").classes("tf-answer").props(f'lang="{visit.language}"'):
            if len(ways) > 1:
                heading(3, f"{k + 1}.").props('lang="en"')
            markup(f"<p>{escape(one.to_text(visit.language))}</p>", "tf-sentence")
            markup(status(one, visit.language) + changes(one, visit.language))
        if k == 0:
            _take_home(desk, visit.found)
    if visit.n_ways > len(ways):
        reason = catalogue(visit.language).reason(visit.found.ways[len(ways)][0].why)
        markup(f"<p>{escape(plain(reason[:1].upper() + reason[1:]))}.</p>", "tf-faint")


def _take_home(desk: Desk, found: Explanations) -> None:
    language = desk.visit.language
    name = f"row-{desk.visit.label}".replace(" ", "-")
    dialog = ui.dialog()
    with ui.element("div").classes("tf-line tf-downloads").props('role="group" aria-label="Downloads"'):
        ui.label("Download:").classes("tf-faint")
        button("HTML", lambda: ui.download(page_of(found, desk), f"{name}.html", "text/html"))
        button("JSON", lambda: ui.download(found.to_json().encode(), f"{name}.json", "application/json"))
        if found[0].status.has_answer:
            button("Certificate", lambda: ui.download(certificate_of(found), f"{name}-certificate.json"))
        button("Letter", dialog.open)
    with dialog, ui.card().classes("tf-dialog").props('role="dialog" aria-label="Letter"'):
        heading(2, "Letter")
        template = ui.select(list(TEMPLATES), value=TEMPLATES[0], label="Template").props("outlined dense")
        to, sender = ui.input("To").props("outlined dense"), ui.input("From").props("outlined dense")

        def text() -> str:
            names = {"recipient": to.value or None, "sender": sender.value or None}
            return found[0].to_letter(language, template=template.value, **names)

        shown = ui.element("pre").classes("tf-letter").props(f'lang="{language}" tabindex="0"')
        with shown:
            body = ui.html(escape(text()), sanitize=False, tag="span")
        for field in (template, to, sender):
            field.on_value_change(lambda: body.set_content(escape(text())))
        with ui.element("div").classes("tf-line"):
            button("Download", lambda: ui.download(text().encode(), f"{name}.txt", "text/plain"), is_main=True)
            button("Close", dialog.close)


def page_of(found: Explanations, desk: Desk) -> bytes:
    """The answers as a page of their own."""
    return report(found, found.summary(), desk.service.title, desk.visit.language).encode()


def certificate_of(found: Explanations) -> bytes:
    """What `treefocus verify` checks."""
    return json.dumps(found[0].certificate()).encode()
