"""A letter as a Word document, without a library: the format is a ZIP of a few XML files (ECMA-376), and a
plain letter is a paragraph a line."""

from __future__ import annotations

import io
import re
import zipfile
from xml.sax.saxutils import escape

_TYPES = (
    '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    '<Override PartName="/word/document.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
)
_RELATIONS = (
    '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
    'Target="word/document.xml"/></Relationships>'
)
_NAMESPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # in XML 1.0
_WHEN = (1980, 1, 1, 0, 0, 0)  # the same letter is the same bytes


def document(text: str, language: str = "en") -> bytes:
    """The text as a .docx file.

    Parameters
    ----------
    text : str
        Paragraphs, one a line; an empty line is an empty paragraph.
    language : str
        For the reader's spelling checker.

    Returns
    -------
    bytes
        The file.

    Examples
    --------
    >>> from treefocus.render.docx import document
    >>> document("Dear Ada,")[:2]
    b'PK'
    """
    own = f'<w:rPr><w:lang w:val="{escape(language)}"/></w:rPr>'
    lines = "".join(
        f'<w:p><w:r>{own}<w:t xml:space="preserve">{escape(_FORBIDDEN.sub("", line))}</w:t></w:r></w:p>'
        for line in text.split("\n")
    )
    body = (
        '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
        f'<w:document xmlns:w="{_NAMESPACE}"><w:body>{lines}</w:body></w:document>'
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        parts = (("[Content_Types].xml", _TYPES), ("_rels/.rels", _RELATIONS), ("word/document.xml", body))
        for name, content in parts:
            archive.writestr(zipfile.ZipInfo(name, _WHEN), content, zipfile.ZIP_DEFLATED)
    return file.getvalue()
