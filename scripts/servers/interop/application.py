# SPDX-License-Identifier: MIT
"""The servers from PyPI, and the origin behind the servers that forward requests: application.py SERVER SETTINGS.

SETTINGS is a JSON file with ports (http, tls, idle, mutual), files, ids, certificate, key and client_authority. gunicorn loads
`application:wsgi`, with the path of the file in AN_SETTINGS.
"""

import asyncio
import gzip
import json
import mimetypes
import os
import pathlib
import ssl
import sys

settings = json.loads(pathlib.Path(os.environ.get("AN_SETTINGS") or sys.argv[2]).read_text())
ports = settings["ports"]
ids = os.open(settings["ids"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)


def refusal(path):
    """Returns status, header fields and body of a response that is sent before the request body is read, or None."""
    _, kind, *rest = path.split("/") + [""]
    if kind == "refuse":
        return int(rest[0]), {"www-authenticate": 'Basic realm="users"'}, b"refused\n"
    if kind == "redirect":
        return int(rest[0]), {"location": "/sink"}, b""
    return None


def answer(path, fields, received):
    """Returns status, header fields and body of the response to a complete request. Field names are in lower case.

    The ID of the request is appended to the file `ids`, in which a request that was processed twice appears twice.
    """
    if identifier := fields.get("x-request-id"):
        os.write(ids, f"{identifier}\n".encode())
    if path == "/sink":
        return 200, {"content-type": "application/json"}, json.dumps({"received": received}).encode()
    file = pathlib.Path(settings["files"]) / path.rsplit("/", 1)[1]
    if not file.is_file():
        return 404, {}, b"not found\n"
    body = file.read_bytes()
    if path.startswith("/gzip/"):
        return 200, {"content-encoding": "gzip"}, gzip.compress(body)
    tag = f'"{len(body)}"'
    kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
    more = {"content-type": kind, "etag": tag, "accept-ranges": "bytes"}
    first, dash, last = fields.get("range", "").removeprefix("bytes=").partition("-")
    if dash and fields.get("if-range", tag) == tag:
        end = int(last or len(body) - 1)
        more["content-range"] = f"bytes {first}-{end}/{len(body)}"
        return 206, more, body[int(first):end + 1]
    return 200, more, body


async def asgi(scope, receive, send):
    """The application for hypercorn and uvicorn."""
    if scope["type"] != "http":
        return
    path = scope["path"]
    fields = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    result = refusal(path)
    if not result:
        received, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            received += len(message.get("body", b""))
            more = message.get("more_body", False)
        if path == "/early" and "http.response.early_hint" in scope.get("extensions", {}):
            await send({"type": "http.response.early_hint", "links": [b"</style.css>; rel=preload"]})
        result = (200, {}, b"{}") if path == "/early" else answer(path, fields, received)
    status, more, body = result
    more["content-length"] = str(len(body))
    await send({"type": "http.response.start", "status": status,
                "headers": [(name.encode(), value.encode()) for name, value in more.items()]})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


def wsgi(environ, start_response):
    """The application for gunicorn."""
    path = environ["PATH_INFO"]
    fields = {name[5:].lower().replace("_", "-"): value for name, value in environ.items() if name.startswith("HTTP_")}
    result = refusal(path)
    if not result:
        received = 0
        while piece := environ["wsgi.input"].read(1 << 18):
            received += len(piece)
        result = answer(path, fields, received)
    status, more, body = result
    start_response(f"{status} Answer", [*more.items(), ("content-length", str(len(body)))])
    return [b"" if environ["REQUEST_METHOD"] == "HEAD" else body]


def run_hypercorn():
    import hypercorn.asyncio
    import hypercorn.config

    def configuration(port, keep_alive=60, **options):
        config = hypercorn.config.Config()
        config.bind = [f"127.0.0.1:{port}"]
        config.keep_alive_timeout = keep_alive
        config.backlog = 8192
        config.errorlog = "-"
        for name, value in options.items():
            setattr(config, name, value)
        return config

    secure = {"certfile": settings["certificate"], "keyfile": settings["key"]}

    async def main():
        await asyncio.gather(*(hypercorn.asyncio.serve(asgi, config) for config in (
            configuration(ports["http"]), configuration(ports["tls"], **secure),
            configuration(ports["idle"], 1, **secure),
            configuration(ports["mutual"], **secure, ca_certs=settings["client_authority"],
                          verify_mode=ssl.CERT_REQUIRED))))

    asyncio.run(main())


def run_uvicorn():
    import uvicorn

    secure = {"ssl_certfile": settings["certificate"], "ssl_keyfile": settings["key"]}

    def server(port, keep_alive=60, **options):
        return uvicorn.Server(uvicorn.Config(asgi, host="127.0.0.1", port=port, timeout_keep_alive=keep_alive,
                                             backlog=8192, log_level="warning", lifespan="off", **options))

    async def main():
        await asyncio.gather(*(one.serve() for one in (
            server(ports["http"]), server(ports["tls"], **secure), server(ports["idle"], 1, **secure),
            server(ports["mutual"], **secure, ssl_ca_certs=settings["client_authority"],
                   ssl_cert_reqs=ssl.CERT_REQUIRED))))

    asyncio.run(main())


def run_aiohttp():
    from aiohttp import web

    async def refuse_expectation(request):
        if request.path == "/refuse/417":
            raise web.HTTPExpectationFailed()
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    async def handle(request):
        result = refusal(request.path)
        if not result:
            received = 0
            async for piece in request.content.iter_chunked(1 << 18):
                received += len(piece)
            fields = {name.lower(): value for name, value in request.headers.items()}
            result = answer(request.path, fields, received)
        status, more, body = result
        return web.Response(status=status, headers=more, body=body)

    async def main():
        application = web.Application(client_max_size=1 << 30)
        application.router.add_route("*", "/{path:.*}", handle, expect_handler=refuse_expectation)
        secure = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        secure.load_cert_chain(settings["certificate"], settings["key"])
        mutual = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=settings["client_authority"])
        mutual.load_cert_chain(settings["certificate"], settings["key"])
        mutual.verify_mode = ssl.CERT_REQUIRED
        for name, keep_alive, context in (("http", 60, None), ("tls", 60, secure), ("idle", 1, secure),
                                          ("mutual", 60, mutual)):
            runner = web.AppRunner(application, keepalive_timeout=keep_alive)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", ports[name], ssl_context=context, backlog=8192).start()
        await asyncio.Event().wait()

    asyncio.run(main())


def run_twisted():
    from twisted.internet import reactor, ssl as tls
    from twisted.web import resource, server

    class Page(resource.Resource):
        isLeaf = True

        def render(self, request):
            path = request.path.decode()
            result = refusal(path)
            if not result:
                received = len(request.content.read())
                fields = {name.decode().lower(): values[0].decode()
                          for name, values in request.requestHeaders.getAllRawHeaders()}
                result = answer(path, fields, received)
            status, more, body = result
            request.setResponseCode(status)
            for name, value in more.items():
                request.setHeader(name, value)
            request.setHeader("content-length", str(len(body)))
            return b"" if request.method == b"HEAD" else body

    context = tls.PrivateCertificate.loadPEM(pathlib.Path(settings["key"]).read_text()
                                             + pathlib.Path(settings["certificate"]).read_text()).options()
    reactor.listenTCP(ports["http"], server.Site(Page(), timeout=60), backlog=8192, interface="127.0.0.1")
    for name, timeout in (("tls", 60), ("idle", 1)):
        reactor.listenSSL(ports[name], server.Site(Page(), timeout=timeout), context, backlog=8192,
                          interface="127.0.0.1")
    reactor.run()


def run_origin():
    """An HTTP/1.1 server with the standard library, which also sends interim responses and trailers."""
    async def skip(reader, size):
        rest = size
        while rest:
            piece = await reader.read(min(rest, 1 << 18))
            if not piece:
                raise asyncio.IncompleteReadError(b"", rest)
            rest -= len(piece)
        return size

    async def receive(reader, fields):
        if fields.get("transfer-encoding", "").lower() != "chunked":
            return await skip(reader, int(fields.get("content-length", 0)))
        received = 0
        while size := int((await reader.readline()).partition(b";")[0], 16):
            received += await skip(reader, size)
            await reader.readline()
        while (await reader.readline()).strip():
            pass
        return received

    async def exchange(reader, writer):
        """Reads a request and sends its response. Returns false at the end of the connection."""
        line = await reader.readline()
        if not line:
            return False
        method, target, _ = line.decode("latin-1").split(" ", 2)
        fields = {}
        while (line := await reader.readline()).strip():
            name, value = line.decode("latin-1").split(":", 1)
            fields[name.lower()] = value.strip()
        if fields.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        path = target.partition("?")[0]
        status, more, body = answer(path, fields, await receive(reader, fields))
        if path == "/early":
            status, more, body = 200, {}, b"{}"
            writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n")
        if path == "/trailers":
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
                         b"5\r\nhello\r\n0\r\nX-Sum: 5\r\n\r\n")
        else:
            head = [f"HTTP/1.1 {status} Answer", *(f"{name}: {value}" for name, value in more.items())]
            writer.write("\r\n".join([*head, f"Content-Length: {len(body)}\r\n\r\n"]).encode())
            writer.write(b"" if method == "HEAD" else body)
        await writer.drain()
        return fields.get("connection", "").lower() != "close"

    async def serve(reader, writer):
        try:
            while await exchange(reader, writer):
                pass
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    async def main():
        server = await asyncio.start_server(serve, "127.0.0.1", ports["http"], backlog=8192)
        await server.serve_forever()

    asyncio.run(main())


if __name__ == "__main__":
    globals()[f"run_{sys.argv[1]}"]()
