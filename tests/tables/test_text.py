"""Text files of rows: what a record that cannot be read is told to have."""

from __future__ import annotations

from treefocus.tables.text import complaint_of, records


def test_a_carriage_return_inside_a_line_costs_that_line() -> None:
    first, bad, last = records(iter(["a,b\n", "1\r,2\n", "3,4\n"]), 1, ",")
    assert (first.cells, last.cells) == (["a", "b"], ["3", "4"])
    assert complaint_of(bad, 2) == (
        "line 2: a carriage return stands inside the line; a line ends with a line feed, or with both"
    )
