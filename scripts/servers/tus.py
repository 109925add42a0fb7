"""A tus server, by the package resumable-upload, and a proxy before it that cuts each connection.

    tus.py PORT CUT_PORT DIR

The proxy passes on a random number of bytes of the client, at most 40,000, and then closes the connection in both
directions. Uploads are kept in DIR.
"""

import asyncio
import contextlib
import pathlib
import random
import subprocess
import sys

LONGEST = 40_000


async def pass_on(reader, writer, limit=None):
    while limit is None or limit > 0:
        piece = await reader.read(65_536 if limit is None else min(limit, 65_536))
        if not piece:
            break
        writer.write(piece)
        await writer.drain()
        limit = limit and limit - len(piece)


async def main(port, cut_port, directory):
    directory.mkdir(parents=True, exist_ok=True)
    numbers = random.Random(49)

    async def serve(reader, writer):
        with contextlib.suppress(OSError):
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", port)
            directions = [asyncio.create_task(pass_on(reader, server_writer, numbers.randint(1, LONGEST))),
                          asyncio.create_task(pass_on(server_reader, writer))]
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
            for direction in directions:
                direction.cancel()
            server_writer.close()
        writer.close()

    # In the process group of this program, with which it is stopped.
    server = subprocess.Popen([
        sys.executable, "-m", "resumable_upload", "serve", "--host", "127.0.0.1", "--port", str(port), "--upload-dir",
        str(directory / "uploads"), "--db-path", str(directory / "uploads.db"), "--enable-downloads",
        "--checksum-algorithms", "sha1,sha256", "--log-level", "WARNING"])
    proxy = await asyncio.start_server(serve, "127.0.0.1", cut_port)
    async with proxy:
        await asyncio.to_thread(server.wait)


asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3])))
