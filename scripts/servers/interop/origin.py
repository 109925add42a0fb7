# SPDX-License-Identifier: MIT
"""An HTTP/1.1 server with the standard library, behind the servers that forward requests.

    origin.py PORT FILES IDS

It responds to `/sink` with the number of bytes received, to `/early` after an interim 103, to `/trailers` with a
trailer field, and otherwise with files of the directory FILES. When a request is complete, the value of its
X-Request-ID is appended to the file IDS, in which a request that was processed twice appears twice.
"""

import asyncio
import json
import os
import pathlib
import sys


class Origin:
    def __init__(self, files, ids):
        self.files = pathlib.Path(files)
        self.ids = os.open(ids, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    async def serve(self, reader, writer):
        try:
            while await self.exchange(reader, writer):
                pass
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    async def exchange(self, reader, writer):
        """Reads a request and sends its response. Returns false at the end of the connection."""
        line = await reader.readline()
        if not line:
            return False
        method, path, _ = line.decode("latin-1").split(" ", 2)
        fields = {}
        while (line := await reader.readline()).strip():
            name, value = line.decode("latin-1").split(":", 1)
            fields[name.lower()] = value.strip()
        if fields.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        received = await self.receive(reader, fields)
        if identifier := fields.get("x-request-id"):
            os.write(self.ids, f"{identifier}\n".encode())
        self.answer(writer, method, path.partition("?")[0], fields, received)
        await writer.drain()
        return fields.get("connection", "").lower() != "close"

    async def receive(self, reader, fields):
        received = 0
        if fields.get("transfer-encoding", "").lower() == "chunked":
            while size := int((await reader.readline()).partition(b";")[0], 16):
                received += await self.skip(reader, size)
                await reader.readline()
            while (await reader.readline()).strip():
                pass
        else:
            received = await self.skip(reader, int(fields.get("content-length", 0)))
        return received

    async def skip(self, reader, size):
        rest = size
        while rest:
            piece = await reader.read(min(rest, 1 << 18))
            if not piece:
                raise asyncio.IncompleteReadError(b"", rest)
            rest -= len(piece)
        return size

    def answer(self, writer, method, path, fields, received):
        if path == "/early":
            writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n")
        if path == "/trailers":
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
                         b"5\r\nhello\r\n0\r\nX-Sum: 5\r\n\r\n")
            return
        status, kind, body, more = "200 OK", "application/json", b"", ""
        if path == "/sink":
            body = json.dumps({"received": received}).encode()
        elif path == "/early":
            body = b"{}"
        elif (file := self.files / path.lstrip("/")).is_file():
            kind = {".json": "application/json", ".txt": "text/plain"}.get(file.suffix, "application/octet-stream")
            body = file.read_bytes()
            more = f'ETag: "{len(body)}"\r\nAccept-Ranges: bytes\r\n'
            first, dash, last = fields.get("range", "").removeprefix("bytes=").partition("-")
            if dash and fields.get("if-range", f'"{len(body)}"') == f'"{len(body)}"':
                end = int(last or len(body) - 1)
                status = "206 Partial Content"
                more += f"Content-Range: bytes {first}-{end}/{len(body)}\r\n"
                body = body[int(first):end + 1]
        else:
            status = "404 Not Found"
        writer.write(f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode())
        if method != "HEAD":
            writer.write(body)


async def main(port, files, ids):
    origin = Origin(files, ids)
    server = await asyncio.start_server(origin.serve, "127.0.0.1", int(port), backlog=8192)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
