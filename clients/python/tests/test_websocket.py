"""The WebSocket client against frames that the server may send, and some that it may not."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import unittest
from typing import Any

import taskledger
from taskledger import AsyncClient, _websocket

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def frame(first: int, payload: bytes) -> bytes:
    size = len(payload)
    if size < 126:
        return bytes([first, size]) + payload
    if size < 65536:
        return bytes([first, 126]) + size.to_bytes(2, "big") + payload
    return bytes([first, 127]) + size.to_bytes(8, "big") + payload


class Frames(unittest.IsolatedAsyncioTestCase):
    async def converse(self, *frames: bytes, status: bytes = b"", wrong_key: bool = False) -> Any:
        """What comes of a socket on which these frames arrive: a list of messages or an error."""
        self.received = b""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            key = head.split(b"sec-websocket-key: ")[1].split(b"\r\n")[0]
            accept = base64.b64encode(hashlib.sha1((b"x" if wrong_key else key) + GUID).digest())
            writer.write(
                status
                or b"HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: "
                + accept
                + b"\r\n\r\n"
            )
            for one in frames:
                for cut in range(0, len(one), 30_000):
                    writer.write(one[cut : cut + 30_000])
                    await writer.drain()
            if status:
                writer.close()
            self.received = await reader.read()
            writer.close()
            done.set()

        done = asyncio.Event()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        got = []
        async with AsyncClient(f"http://127.0.0.1:{port}") as client:
            try:
                socket = await _websocket.WebSocket.connect(client._pool, timeout=5)
                try:
                    while True:
                        got.append(await asyncio.wait_for(socket.receive(), 1))
                except asyncio.TimeoutError:
                    return got
                finally:
                    await socket.close()
            finally:
                server.close()
                await done.wait()
                await asyncio.sleep(0)

    async def test_messages_of_all_sizes_in_one_or_several_frames(self) -> None:
        big = b'{"text":"%s"}' % (b"x" * 200_000)
        got = await self.converse(
            frame(0x81, b'{"a":1}'),
            frame(0x01, b'{"b":'),
            frame(0x89, b"ping"),
            frame(0x00, b"2"),
            frame(0x80, b"}"),
            frame(0x8A, b""),
            frame(0x81, big),
            frame(0x81, b'{"c":"%s"}' % (b"y" * 300)),
        )
        self.assertEqual(got[:2], [{"a": 1}, {"b": 2}])
        self.assertEqual([len(str(m)) > 300 for m in got[2:]], [True, True])
        pong = self.received[:10]
        payload = bytes(byte ^ pong[2 + k % 4] for k, byte in enumerate(pong[6:10]))
        self.assertEqual((pong[0], pong[1], payload), (0x8A, 0x84, b"ping"))

    async def test_what_breaks_the_rules(self) -> None:
        for wrong, error in [
            (frame(0x82, b"binary"), taskledger.ProtocolError),
            (frame(0x80, b"a continuation of nothing"), taskledger.ProtocolError),
            (frame(0xC1, b"an extension"), taskledger.ProtocolError),
            (bytes([0x81, 0x81, 0, 0, 0, 0, 0]), taskledger.ProtocolError),
            (frame(0x89, b"x" * 126), taskledger.ProtocolError),
            (frame(0x81, b"[]"), taskledger.ProtocolError),
            (bytes([0x81, 127]) + b"\x7f" * 8, taskledger.ProtocolError),
            (frame(0x88, b"\x11\x31token"), taskledger.TransportError),
        ]:
            with self.subTest(wrong[:20]), self.assertRaises(error):
                await self.converse(wrong)

    async def test_refused_handshakes(self) -> None:
        body = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32004,"message":"Unauthorized"}}'
        head = b"HTTP/1.1 401 Unauthorized\r\ncontent-length: %d\r\n\r\n" % len(body)
        with self.assertRaises(taskledger.Unauthenticated):
            await self.converse(status=head + body)
        with self.assertRaises(taskledger.TransportError):
            await self.converse(status=b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n")
        with self.assertRaises(taskledger.ProtocolError):
            await self.converse(wrong_key=True)

    async def test_what_is_sent_is_masked(self) -> None:
        for size in (0, 1, 5, 125, 126, 70_000):
            raw = bytes(k % 251 for k in range(size))
            masked = _websocket._masked(raw, b"\x01\x02\x03\x04")
            self.assertEqual(_websocket._masked(masked, b"\x01\x02\x03\x04"), raw)
            self.assertEqual(masked[:4], bytes(b ^ (k + 1) for k, b in enumerate(raw[:4])))


if __name__ == "__main__":
    unittest.main()
