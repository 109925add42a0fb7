#!/usr/bin/env python3
# SPDX-License-Identifier: MIT

"""Serves one file with range requests, and stalls the third connection after a megabyte: stalling.py FILE

Prints its port, and ends with its standard input.
"""

import os
import re
import socket
import sys
import threading


def serve(connection, path, stalls):
    with connection, connection.makefile("rb") as requests, open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        while request := requests.readline():
            fields = {}
            while (line := requests.readline().strip()):
                name, _, value = line.decode().partition(":")
                fields[name.lower()] = value.strip()
            part = re.fullmatch(r"bytes=(\d+)-(\d*)", fields.get("range", ""))
            first = int(part[1]) if part else 0
            last = min(int(part[2]), size - 1) if part and part[2] else size - 1
            head = [f"HTTP/1.1 {'206 Partial Content' if part else '200 OK'}", 'ETag: "1"', "Accept-Ranges: bytes"]
            if part:
                head.append(f"Content-Range: bytes {first}-{last}/{size}")
            head.append(f"Content-Length: {last - first + 1}")
            connection.sendall(("\r\n".join(head) + "\r\n\r\n").encode())
            if request.startswith(b"HEAD"):
                continue
            end = min(last + 1, first + (1 << 20)) if stalls else last + 1
            while first < end:
                first += os.sendfile(connection.fileno(), file.fileno(), first, min(end - first, 1 << 20))
            if stalls:
                # Until the client closes the connection.
                requests.read()
                return


def accept(listener, path):
    number = 0
    while True:
        connection, _ = listener.accept()
        number += 1
        arguments = (connection, path, number == 3)
        threading.Thread(target=attempt, args=arguments, daemon=True).start()


def attempt(*arguments):
    try:
        serve(*arguments)
    except OSError:
        pass


listener = socket.create_server(("127.0.0.1", 0), backlog=64)
print(listener.getsockname()[1], flush=True)
threading.Thread(target=accept, args=(listener, sys.argv[1]), daemon=True).start()
sys.stdin.read()
