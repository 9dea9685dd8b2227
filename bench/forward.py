#!/usr/bin/env python3
"""Forwards TCP connections: forward.py LISTEN_ADDRESS:PORT ADDRESS:PORT

Without TLS, a recruiter serves only programs that name it as 127.0.0.1, and a bench's hosts are namespaces.
"""

import asyncio
import contextlib
import sys


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while some := await reader.read(1 << 16):
            writer.write(some)
            await writer.drain()
    writer.close()


async def main() -> None:
    (address, port), target = (word.rsplit(":", 1) for word in sys.argv[1:3])

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.open_connection(*target)
        except OSError:
            writer.close()
            return
        await asyncio.gather(copy(reader, there[1]), copy(there[0], writer))

    server = await asyncio.start_server(forward, address, int(port))
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
