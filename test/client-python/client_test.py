"""syrinx_client.py against a server whose every move is a line of the test."""

import asyncio
import base64
import contextlib
import json
import random
import threading
import unittest

import websockets
from syrinx_client import AsyncSyrinx, Audio, Flushed, Format, Syrinx, SyrinxError, Word, backoff_seconds

KEY = "svc_sk_test"


def audio(context_id, data):
    return {"audio_chunk": base64.b64encode(data).decode(), "context_id": context_id}


def words(context_id, *list_of_words):
    count = len(list_of_words)
    times = {"words": list_of_words, "start_seconds": list(range(count)), "end_seconds": list(range(1, count + 1))}
    return {"timestamps": times, "context_id": context_id}


def started(context_id):
    return {"context_started": {"voice_id": "ada"}, "context_id": context_id}


def ended(context_id):
    flushed = {"flush_completed": True, "flush_id": f"{context_id}:close", "context_id": context_id}
    return flushed, {"context_closed": True, "context_id": context_id}


class Peer:
    """The server's end of one connection."""

    def __init__(self, socket):
        self.socket = socket
        self.frames = asyncio.Queue()

    async def send(self, *frames):
        for frame in frames:
            await self.socket.send(frame if isinstance(frame, (str, bytes)) else json.dumps(frame))

    async def next(self):
        return await asyncio.wait_for(self.frames.get(), 10)


@contextlib.asynccontextmanager
async def connected(on_open=None, **options):
    peers = asyncio.Queue()

    async def serve(socket, *_):
        peer = Peer(socket)
        if on_open is not None:
            await on_open(peer)
        await peers.put(peer)
        with contextlib.suppress(websockets.exceptions.ConnectionClosed):
            async for message in socket:
                await peer.frames.put(json.loads(message))

    server = await websockets.serve(serve, "127.0.0.1", 0, ping_interval=None, close_timeout=0.1)
    port = server.sockets[0].getsockname()[1]
    try:
        async with AsyncSyrinx(f"http://127.0.0.1:{port}", KEY, **options) as client:
            yield client, peers
    finally:
        server.close()
        await server.wait_closed()


async def collect(context):
    return [event async for event in context]


class AsyncTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        # unittest turns it on: it reports each step of a slow machine.
        asyncio.get_running_loop().set_debug(False)

    async def fails(self, code, work, retryable=None):
        with self.assertRaises(SyrinxError) as caught:
            await work
        self.assertEqual(caught.exception.code, code)
        if retryable is not None:
            self.assertEqual(caught.exception.retryable, retryable)
        return caught.exception


class ContextTest(AsyncTest):
    async def test_frames_go_out_in_order_and_as_the_protocol_defines_them(self):
        async with connected() as (client, peers):
            options = {"format": Format("mp3", 24_000, 64), "timestamps": True, "temperature": 0.7}
            context = await client.context("ada", context_id="c", **options)
            await context.send("Good ")
            await context.send("")
            await context.send("day.")
            self.assertEqual(await context.flush("f"), "f")
            await context.close()
            peer = await peers.get()
            form = {"encoding": "mp3", "sample_rate": 24_000, "bitrate": 64}
            start = {"voice_id": "ada", "model_id": "default", "timestamps": True, "temperature": 0.7, "response_format": form}
            self.assertEqual(await peer.next(), {"start_context": start, "context_id": "c"})
            self.assertEqual(await peer.next(), {"send_text": "Good ", "context_id": "c"})
            self.assertEqual(await peer.next(), {"send_text": "day.", "context_id": "c"})
            self.assertEqual(await peer.next(), {"flush": True, "flush_id": "f", "context_id": "c"})
            self.assertEqual(await peer.next(), {"close_context": True, "context_id": "c"})
            with self.assertRaisesRegex(TypeError, "sampleRate"):
                client.context("ada", sampleRate=24_000)

    async def test_long_text_is_cut_into_messages_that_the_service_takes(self):
        async with connected() as (client, peers):
            context = await client.context("ada")
            peer = await peers.get()
            await peer.next()
            text = "a" + "\U0001f600" * 100_000 + "\u0001" * 100_000
            await context.send(text)
            await context.close()
            joined = ""
            while "send_text" in (frame := await peer.next()):
                self.assertLess(len(json.dumps(frame)), 1024 * 1024)
                self.assertLess(len(frame["send_text"].encode()), 256 * 1024)
                joined += frame["send_text"]
            self.assertEqual(joined, text)

    async def test_events_come_in_the_order_of_arrival_and_never_from_another_context(self):
        async with connected() as (client, peers):
            one, two = await client.context("ada", context_id="1"), await client.context("ada", context_id="2")
            peer = await peers.get()
            await peer.send(started("1"), audio("1", b"ab"), audio("2", b"x"), words("1", "Good", "day."), audio("1", b""))
            await peer.send({"flush_completed": True, "flush_id": "f", "context_id": "1"}, audio("1", b"c"))
            await peer.send({"visemes": [], "context_id": "1"}, audio("unknown", b"z"), *ended("1"), *ended("2"))
            expected = [Audio(b"ab"), Word("Good", 0, 1), Word("day.", 1, 2), Flushed("f"), Audio(b"c")]
            self.assertEqual(await collect(one), expected)
            self.assertEqual(await collect(two), [Audio(b"x")])

    async def test_cancel_ends_a_loop_at_once_and_no_stale_audio_follows(self):
        async with connected() as (client, peers):
            context = await client.context("ada", context_id="c")
            peer = await peers.get()
            await peer.send(started("c"), audio("c", b"1"), audio("c", b"2"))
            self.assertEqual(await context.__anext__(), Audio(b"1"))
            await context.cancel()
            await context.cancel()
            await peer.send(audio("c", b"3"))
            self.assertEqual(await collect(context), [])
            await self.fails("closed", context.send("late"))
            with self.assertRaises(ValueError):
                await client.context("ada", context_id="c")
            await peer.next()
            self.assertEqual(await peer.next(), {"cancel_context": True, "context_id": "c"})
            waiting = await client.context("bob", context_id="b")
            loop = asyncio.create_task(collect(waiting))
            await asyncio.sleep(0)
            await waiting.cancel()
            self.assertEqual(await loop, [], "a loop that waits ends too")
            other = await client.context("bob")
            await peer.send(*ended("c"), *ended(other.id))
            await collect(other)
            again = await client.context("ada", context_id="c")
            await peer.send(audio("c", b"4"), *ended("c"))
            self.assertEqual(await collect(again), [Audio(b"4")])

    async def test_the_end_of_a_block_cancels_what_has_not_arrived(self):
        async with connected() as (client, peers):
            async with await client.context("ada", context_id="c") as context:
                await context.send("cut off")
            peer = await peers.get()
            await peer.next()
            await peer.next()
            self.assertEqual(await peer.next(), {"cancel_context": True, "context_id": "c"})

    async def test_an_error_frame_fails_only_its_context(self):
        cases = {
            "INSUFFICIENT_CREDITS": ("insufficient_credits", False),
            "Rate limit exceeded": ("rate_limited", True),
            "Service unavailable": ("unavailable", True),
            "Too much text is waiting": ("buffer_full", True),
            "Too many contexts are open": ("too_many_contexts", True),
            "Internal Server Error": ("server_error", True),
            "invalid frame: temperature": ("invalid_request", False),
        }
        async with connected() as (client, peers):
            other = await client.context("ada", context_id="other")
            peer = await peers.get()
            for text, (code, retryable) in cases.items():
                context = await client.context("ada", context_id=code)
                await peer.send(started(code), audio(code, b"1"), {"error": text, "context_id": code}, audio(code, b"2"))
                self.assertEqual(await context.__anext__(), Audio(b"1"), "what came before is read before")
                await self.fails(code, context.__anext__(), retryable)
                await self.fails(code, context.send("more"))
            unknown = await client.context("zed", context_id="z")
            await peer.send({"error": "Unknown voice 'zed'. Valid voices: ada", "context_id": "z"})
            await self.fails("unknown_voice", collect(unknown), False)
            await peer.send(*ended("other"))
            self.assertEqual(await collect(other), [])


class ConnectionTest(AsyncTest):
    async def test_a_key_that_is_refused_after_the_handshake_fails_connect(self):
        async def refuse(peer):
            await peer.send({"error": "INVALID_API_KEY"})
            await peer.socket.close(1008, "INVALID_API_KEY")

        async with connected(refuse) as (client, _):
            await self.fails("invalid_api_key", client.connect(), False)

    async def test_a_lost_connection_fails_its_contexts_and_the_next_context_opens_another(self):
        async with connected() as (client, peers):
            context = await client.context("ada")
            peer = await peers.get()
            await peer.socket.close(1001, "draining")
            await self.fails("connection_lost", collect(context), True)
            await self.fails("connection_lost", context.send("more"))
            again = await client.context("ada", context_id="c")
            await (await peers.get()).send(audio("c", b"1"), *ended("c"))
            self.assertEqual(await collect(again), [Audio(b"1")])

    async def test_invalid_frames_are_protocol_errors(self):
        for message in ("not json", "[]", '{"audio_chunk": 1, "context_id": "c"}', '{"audio_chunk": "###", "context_id": "c"}',
                        '{"timestamps": null, "context_id": "c"}', '{"flush_completed": true, "context_id": "c"}'):  # fmt: skip
            async with connected() as (client, peers):
                context = await client.context("ada", context_id="c")
                await (await peers.get()).send(message)
                await self.fails("protocol_error", collect(context), True)

    async def test_a_service_that_answers_no_ping_counts_as_lost(self):
        async with connected(ping_interval_seconds=0.1) as (client, peers):
            context = await client.context("ada")
            peer = await peers.get()
            await asyncio.sleep(0.5)
            await context.send("It answers, and is kept.")
            peer.socket.transport.pause_reading()
            error = await self.fails("connection_lost", collect(context), True)
            self.assertIn("ping", str(error))

    async def test_a_service_that_reads_no_more_ends_what_waits_to_send(self):
        async with connected(ping_interval_seconds=0.1) as (client, peers):
            context = await client.context("ada")
            peer = await peers.get()
            peer.socket.transport.pause_reading()

            async def speak():
                for _ in range(1_000):
                    await context.send("More than the buffers of the sockets hold. " * 500)

            speaking = asyncio.create_task(speak())
            await self.fails("connection_lost", collect(context), True)
            await self.fails("connection_lost", asyncio.wait_for(speaking, 10), True)

    async def test_unread_audio_stops_the_connection_and_a_loop_that_reads_goes_on(self):
        chunks = [random.randbytes(60_000) for _ in range(250)]
        async with connected(receive_buffer_bytes_max=100_000) as (client, peers):
            context = await client.context("ada", context_id="c")
            peer = await peers.get()

            async def speak():
                await peer.send(*(audio("c", chunk) for chunk in chunks), *ended("c"))

            speaking = asyncio.create_task(speak())
            await asyncio.sleep(0.5)
            self.assertFalse(speaking.done(), "20 MB of frames do not fit")
            self.assertLess(context._unread_bytes, 200_000)
            self.assertEqual(await collect(context), [Audio(chunk) for chunk in chunks])
            await speaking

    async def test_a_context_that_nobody_reads_fails_and_the_others_go_on(self):
        async with connected(receive_buffer_bytes_max=1_000, consumer_stall_seconds=0.2) as (client, peers):
            stalled, other = await client.context("ada", context_id="s"), await client.context("ada", context_id="o")
            peer = await peers.get()
            await peer.send(audio("s", bytes(2_000)), audio("o", b"1"), *ended("o"))
            self.assertEqual(await collect(other), [Audio(b"1")])
            self.assertEqual(await stalled.__anext__(), Audio(bytes(2_000)))
            await self.fails("slow_consumer", stalled.__anext__(), False)

    async def test_close_fails_open_contexts_and_later_ones(self):
        async with connected() as (client, peers):
            context = await client.context("ada")
            loop = asyncio.create_task(collect(context))
            await asyncio.sleep(0)
            await client.close()
            await client.close()
            await self.fails("closed", loop, False)
            await self.fails("closed", client.context("ada"))


class HandshakeTest(unittest.IsolatedAsyncioTestCase):
    async def test_a_refused_handshake_has_a_code_and_is_tried_again_only_if_that_can_help(self):
        cases = {401: ("invalid_api_key", 1), 402: ("insufficient_credits", 1), 404: ("handshake_refused", 1),
                 429: ("rate_limited", 2), 503: ("unavailable", 2)}  # fmt: skip
        for status, (code, tries) in cases.items():
            count = 0

            async def refuse(reader, writer):
                nonlocal count
                count += 1
                await reader.readuntil(b"\r\n\r\n")
                writer.write(f"HTTP/1.1 {status} No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())
                writer.close()

            server = await asyncio.start_server(refuse, "127.0.0.1", 0)
            async with server:
                port = server.sockets[0].getsockname()[1]
                async with AsyncSyrinx(f"http://127.0.0.1:{port}", KEY, attempts_max=2) as client:
                    with self.assertRaises(SyrinxError) as caught:
                        await client.connect()
                    self.assertEqual((caught.exception.code, count), (code, tries), status)

    async def test_nothing_at_the_address_is_unreachable_for_each_call(self):
        async with AsyncSyrinx("http://127.0.0.1:1", KEY, attempts_max=1) as client:
            for call in (client.connect, client.voices, lambda: client.speak("Hi.", "ada"), lambda: client.context("ada")):
                with self.assertRaises(SyrinxError) as caught:
                    await call()
                self.assertEqual((caught.exception.code, caught.exception.retryable), ("unreachable", True))


class OthersTest(unittest.TestCase):
    def test_mistakes_of_the_program_are_named_before_anything_is_sent(self):
        with self.assertRaisesRegex(ValueError, "^api_key: set a key"):
            Syrinx("http://127.0.0.1:1", "")
        with self.assertRaisesRegex(ValueError, "^url: "):
            Syrinx("127.0.0.1:8080", KEY)
        with self.assertRaisesRegex(TypeError, "sampleRateHz"):
            Format("pcm", sampleRateHz=1)

    def test_waits_double_from_200_ms_to_5_s_with_jitter_down_to_half(self):
        for failures, full in ((1, 0.2), (2, 0.4), (5, 3.2), (6, 5.0), (10_000, 5.0)):
            waits = [backoff_seconds(failures) for _ in range(200)]
            self.assertTrue(full / 2 <= min(waits) < 0.7 * full and 0.8 * full < max(waits) <= full, failures)

    def test_closing_a_client_without_asyncio_leaves_no_thread(self):
        with Syrinx("http://127.0.0.1:1", KEY, attempts_max=1) as client:
            with self.assertRaises(SyrinxError):
                client.connect()
        client.close()
        self.assertEqual([thread.name for thread in threading.enumerate() if thread.name == "syrinx"], [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
