"""What can be taken home: the answer as a page, a table, JSON, a certificate, or a letter."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import escape

from nicegui import ui

from treefocus.app.page.desk import Desk
from treefocus.app.page.elements import button, heading, named
from treefocus.errors import InvalidInput
from treefocus.explanation.batch import Explanations
from treefocus.render import docx, spreadsheet
from treefocus.render.html import report
from treefocus.render.letter import TEMPLATES

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def build(desk: Desk, found: Explanations) -> None:
    """The buttons, and the letter behind one of them."""
    words = desk.words
    name = f"row-{desk.visit.label}".replace(" ", "-").replace("(", "").replace(")", "")
    with named(ui.element("div").classes("tf-line tf-downloads").props('role="group"'), words["downloads"]):
        ui.label(words["download"]).classes("tf-faint")
        tables(desk, lambda: found, name)
        if found[0].status.has_answer:
            button(words["certificate"], lambda: ui.download(certificate_of(found), f"{name}-certificate.json"))
        button(words["letter"], lambda: _letter(desk, found, name))


def tables(desk: Desk, found: Callable[[], Explanations | None], name: str) -> None:
    """Answers as HTML, JSON, CSV and Excel; `found` is called when one of them is wanted."""

    def offer(text: str, suffix: str, kind: str, write: Callable[[Explanations], bytes]) -> None:
        def give() -> None:
            answers = found()
            if answers is None:
                return
            try:
                ui.download(write(answers), f"{name}.{suffix}", kind)
            except InvalidInput as error:
                ui.notify(str(error), type="warning")

        button(text, give)

    offer("HTML", "html", "text/html", lambda answers: page_of(answers, desk))
    offer("CSV", "csv", "text/csv", lambda answers: spreadsheet.csv_of(answers.records()))
    offer("Excel", "xlsx", XLSX, lambda answers: spreadsheet.xlsx_of(answers.records()))
    offer("JSON", "json", "application/json", lambda answers: answers.to_json().encode())


def _letter(desk: Desk, found: Explanations, name: str) -> None:
    """The letter, in a dialog that is gone when it is closed."""
    words, language = desk.words, desk.visit.language
    with named(ui.dialog(), words["letter"]) as dialog, ui.card().classes("tf-dialog"):
        heading(2, words["letter"])
        to = ui.input(words["addressee"]).props("outlined dense autofocus")
        sender = ui.input(words["sender"]).props("outlined dense")
        template = ui.select(list(TEMPLATES), value=TEMPLATES[0], label=words["template"]).props("outlined dense")

        def text() -> str:
            names = {"recipient": to.value or None, "sender": sender.value or None}
            return found[0].to_letter(language, template=template.value, **names)

        with ui.element("pre").classes("tf-letter").props(f'lang="{language}" tabindex="0"'):
            body = ui.html(escape(text()), sanitize=False, tag="span")
        for field in (template, to, sender):
            field.on_value_change(lambda: body.set_content(escape(text())))
        with ui.element("div").classes("tf-line"):
            button("Word", lambda: ui.download(docx.document(text(), language), f"{name}.docx", DOCX))
            button(words["as_text"], lambda: ui.download(text().encode(), f"{name}.txt", "text/plain"))
            button(words["print"], lambda: ui.run_javascript("window.print()"))
            button(words["close"], dialog.close)
    dialog.on("hide", dialog.delete)
    dialog.open()


def page_of(found: Explanations, desk: Desk) -> bytes:
    """The answers as a page of their own."""
    return report(found, found.summary(), desk.service.title, desk.visit.language).encode()


def certificate_of(found: Explanations) -> bytes:
    """What `treefocus verify` checks."""
    return json.dumps(found[0].certificate()).encode()
