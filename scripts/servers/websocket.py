"""An echo server for WebSocket connections, by the package websockets: a path chooses what it does.

/echo          sends every message back; permessage-deflate if the client offers it
(the second port) the same without extensions
(the third port) the same, with contexts that are reset after each message
/fragments     sends each message back in fragments of at most 100 bytes or characters
/count         sends the number of pongs that answered its pings, after each message
/close/CODE    closes the connection with a code
"""

import asyncio
import sys

from websockets.asyncio.server import serve
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory


async def handle(socket):
    path = socket.request.path
    if path.startswith("/close/"):
        await socket.close(int(path.rpartition("/")[2]), "by request")
        return
    pongs = 0
    async for message in socket:
        if path == "/fragments":
            await socket.send([message[start:start + 100] for start in range(0, len(message), 100)] or [message])
        elif path == "/count":
            await asyncio.wait_for(await socket.ping(), 20)
            pongs += 1
            await socket.send(str(pongs))
        else:
            await socket.send(message)


async def main(echo, plain, fresh):
    reset = ServerPerMessageDeflateFactory(server_no_context_takeover=True, client_no_context_takeover=True)
    async with (
        serve(handle, "127.0.0.1", echo, max_size=1 << 26),
        serve(handle, "127.0.0.1", plain, max_size=1 << 26, compression=None),
        serve(handle, "127.0.0.1", fresh, max_size=1 << 26, compression=None, extensions=[reset]),
    ):
        await asyncio.get_running_loop().create_future()


asyncio.run(main(*map(int, sys.argv[1:])))
