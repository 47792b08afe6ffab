"""A stand-in for S3 on this machine: the few requests that Arrow's file system makes of it, kept in memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

DATE = "Wed, 18 Nov 2026 00:00:00 GMT"


@contextmanager
def stand_in(objects: dict[str, bytes]) -> Iterator[str]:
    """An S3 with these objects, by bucket/key; gives its address, host:port."""

    class Handler(_Requests):
        held = objects

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    held: dict[str, bytes]

    def do_HEAD(self) -> None:
        data = self.held.get(self._key())
        if data is None:
            is_bucket = any(name.startswith(self._key() + "/") for name in self.held) and "/" not in self._key()
            self._answer(200 if is_bucket else 404)
        else:
            self._answer(200, length=len(data))

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        data = self.held.get(self._key())
        if "list-type" in query:
            self._answer(200, _listed(self.held, self._key(), query).encode(), "application/xml")
        elif data is None:
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>", "application/xml")
        elif "Range" in self.headers:
            first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
            end = min(int(last or len(data)), len(data) - 1)
            told = {"Content-Range": f"bytes {first}-{end}/{len(data)}"}
            self._answer(206, data[int(first) : end + 1], **told)
        else:
            self._answer(200, data)

    def _key(self) -> str:
        return unquote(urlsplit(self.path).path).strip("/")

    def _answer(
        self, code: int, data: bytes = b"", kind: str = "binary/octet-stream", length: int | None = None, **told: str
    ) -> None:
        self.send_response(code)
        headers = {"Content-Length": str(len(data) if length is None else length), "Content-Type": kind}
        for name, value in (headers | {"Last-Modified": DATE, "ETag": '"0"', "Accept-Ranges": "bytes"} | told).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""


def _listed(held: dict[str, bytes], bucket: str, query: dict[str, list[str]]) -> str:
    prefix, mark = query.get("prefix", [""])[0], query.get("delimiter", [""])[0]
    keys = [name.partition("/")[2] for name in sorted(held) if name.startswith(bucket + "/")]
    keys = [key for key in keys if key.startswith(prefix)]
    folders = {
        prefix + key[len(prefix) :].partition(mark)[0] + mark for key in keys if mark and mark in key[len(prefix) :]
    }
    files = [key for key in keys if not (mark and mark in key[len(prefix) :])]
    contents = "".join(
        f"<Contents><Key>{escape(key)}</Key><LastModified>2026-11-18T00:00:00.000Z</LastModified><ETag>0</ETag>"
        f"<Size>{len(held[f'{bucket}/{key}'])}</Size><StorageClass>STANDARD</StorageClass></Contents>"
        for key in files
    )
    shared = "".join(f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in sorted(folders))
    count = len(files) + len(folders)
    return (
        '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{count}</KeyCount><MaxKeys>1000</MaxKeys>"
        f"<IsTruncated>false</IsTruncated>{contents}{shared}</ListBucketResult>"
    )
