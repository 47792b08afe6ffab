"""Files that people open elsewhere: CSV and Excel without formulas, and letters for Word."""

from __future__ import annotations

import csv
import io
import math
import zipfile
from xml.etree import ElementTree

import pytest

from treefocus.render.docx import document
from treefocus.render.spreadsheet import csv_of, xlsx_of

COLUMNS = {
    "row": [0, 1, 2],
    "=1+1": ["=HYPERLINK(1)", "@SUM(1)", 'plain, "quoted"\nand broken'],
    "number": [1.5, None, math.inf],
    "truth": [True, False, None],
    "letters": ["ä€\x07", "-5 apples", ""],
}


def test_a_csv_holds_what_was_given_and_no_formula() -> None:
    data = csv_of(COLUMNS)
    assert data.startswith(b"\xef\xbb\xbf")
    head, *rows = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""))
    assert [row[0] for row in rows] == ["0", "1", "2"]
    assert [row[2] for row in rows] == ["1.5", "", "inf"]
    for cell in [*head, *(cell for row in rows for cell in row)]:
        assert not cell.startswith(("=", "@", "+", "-")), cell


def test_an_excel_file_holds_numbers_as_numbers_and_no_formula() -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="the extra excel is not installed")
    sheet = openpyxl.load_workbook(io.BytesIO(xlsx_of(COLUMNS))).active
    rows = list(sheet.iter_rows(values_only=True))
    assert rows[0] == tuple(COLUMNS)
    assert [row[0] for row in rows[1:]] == [0, 1, 2]
    assert [row[2] for row in rows[1:]] == [1.5, None, "inf"]
    assert [row[1] for row in rows[1:]] == COLUMNS["=1+1"]
    assert rows[1][4] == "ä€"
    assert {cell.data_type for row in sheet.iter_rows() for cell in row} <= {"s", "inlineStr", "n", "b"}


def test_a_letter_for_word_has_a_paragraph_a_line() -> None:
    text = "Dear <Ada> & others,\n\n  50 % more: ä€\x00\ud800.\nYours"
    data = document(text, "de")
    assert data == document(text, "de")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        parts = {name: ElementTree.fromstring(archive.read(name)) for name in archive.namelist()}
    own = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
    lines = ["".join(paragraph.itertext()) for paragraph in parts["word/document.xml"].iter(f"{own}p")]
    assert lines == ["Dear <Ada> & others,", "", "  50 % more: ä€.", "Yours"]
    assert {run.get(f"{own}val") for run in parts["word/document.xml"].iter(f"{own}lang")} == {"de"}
    (target,) = [one.get("Target") for one in parts["_rels/.rels"]]
    assert target == "word/document.xml"
