"""A client of the text-to-speech service syrinx: whole files, streams, and contexts over a WebSocket.

`AsyncSyrinx` is for asyncio, `Syrinx` for programs without it. README.md beside this file has examples.
Needs Python 3.10, httpx 0.23 and websockets 10, or later.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import json
import logging
import random
import threading
import uuid
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Concatenate, ParamSpec, TypeVar

import httpx
import websockets
from websockets.exceptions import ConnectionClosed, InvalidHandshake

__all__ = [
    "AsyncContext", "AsyncSyrinx", "Audio", "Context", "Event", "Flushed", "Format", "Speech", "Syrinx", "SyrinxError",
    "Word", "backoff_seconds",
]  # fmt: skip

_log = logging.getLogger("syrinx_client")
_T = TypeVar("_T")
_P = ParamSpec("_P")

# Code points of one message: below the service's 256 KiB of text, however they are encoded.
_PIECE_CHARACTERS = 32 * 1024
_MESSAGE_BYTES_MAX = 4 * 1024 * 1024
_POLICY_VIOLATION = 1008
# The parameter has another name since websockets 14.
_connect: Any = getattr(websockets, "connect")
_HEADERS = "additional_headers" if int(version("websockets").split(".")[0]) >= 14 else "extra_headers"


@dataclass(frozen=True)
class Audio:
    """Encoded audio in the format that was asked for."""

    audio: bytes


@dataclass(frozen=True)
class Word:
    """A word as written, with its punctuation. Seconds count from the first sample of the context or stream."""

    word: str
    start_seconds: float
    end_seconds: float


@dataclass(frozen=True)
class Flushed:
    """All audio and words of the text before the flush have arrived before this."""

    flush_id: str


Event = Audio | Word | Flushed


@dataclass(frozen=True)
class Format:
    """`Format("pcm", sample_rate_hz=24_000)`. What is not given is the service's default."""

    encoding: str
    sample_rate_hz: int | None = None
    bitrate_kbps: int | None = None


@dataclass(frozen=True)
class Speech:
    """A whole file."""

    audio: bytes
    words: list[Word] = field(default_factory=list)


_RETRYABLE = {
    "rate_limited", "server_error", "unavailable", "unreachable", "connection_lost", "protocol_error", "buffer_full",
    "too_many_contexts",
}  # fmt: skip


class SyrinxError(Exception):
    """What failed at the service or on the way to it.

    `code` is one of invalid_api_key, insufficient_credits, rate_limited, unknown_voice, invalid_request, server_error,
    unavailable, handshake_refused, unreachable, connection_lost, protocol_error, slow_consumer, buffer_full,
    too_many_contexts, closed. `retryable`: another try in a moment may succeed.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.retryable = code in _RETRYABLE

    def __str__(self) -> str:
        return f"{self.code}: {self.args[0]}"


def backoff_seconds(failures: int) -> float:
    """The wait before the next try after `failures` in a row: from 0.2 s, doubled up to 5 s, with jitter down to half."""
    return min(5.0, 0.2 * 2.0 ** min(failures - 1, 16)) * random.uniform(0.5, 1.0)


def _error_of_status(status: int, body: str) -> SyrinxError:
    message = f"The service answered {status}" + (f": {body.strip()[:500]}" if body.strip() else "")
    if status == 422:
        return SyrinxError("unknown_voice" if '"unknown_voice"' in body else "invalid_request", message)
    codes = {401: "invalid_api_key", 402: "insufficient_credits", 429: "rate_limited", 500: "server_error"}
    return SyrinxError(codes.get(status, "unavailable" if status > 500 else "handshake_refused"), message)


def _error_of_frame(text: str, is_started: bool) -> SyrinxError:
    if text == "INVALID_API_KEY":
        return SyrinxError("invalid_api_key", "The service does not know this API key")
    if text == "INSUFFICIENT_CREDITS":
        return SyrinxError("insufficient_credits", "The account of this API key is out of credit")
    starts = {
        "Rate limit exceeded": "rate_limited",
        "Too many contexts": "too_many_contexts",
        "Too many ": "buffer_full",
        "Too much ": "buffer_full",
        "Service unavailable": "unavailable",
        "invalid frame: ": "invalid_request",
        "unknown context_id: ": "invalid_request",
    }
    for start, code in starts.items():
        if text.startswith(start):
            return SyrinxError(code, text)
    # The text is not fixed, but names the voice; nothing else is refused before the start.
    return SyrinxError("unknown_voice" if not is_started and "voice" in text.lower() else "server_error", text)


def _words_of(times: Mapping[str, Any]) -> list[Word]:
    columns = zip(times["words"], times["start_seconds"], times["end_seconds"])
    return [Word(word, start, end) for word, start, end in columns]


def _options(
    format: str | Format | None, timestamps: bool, temperature: float | None, **others: Any
) -> dict[str, Any]:
    """The fields that all requests have, without those that are not given."""
    if isinstance(format, Format):
        wire = {"encoding": format.encoding, "sample_rate": format.sample_rate_hz, "bitrate": format.bitrate_kbps}
    else:
        wire = {"encoding": format} if format else {}
    fields = {"timestamps": timestamps, "temperature": temperature, "response_format": wire or None, **others}
    return {name: value for name, value in fields.items() if value is not None}


class AsyncContext:
    """One stream of text in and speech out, with one voice and one format: an answer in a conversation.

    Iterate over it for `Audio`, `Word` and `Flushed`. An `async with` block cancels it at its end, unless all of its
    speech has arrived.
    """

    def __init__(self, context_id: str, connection: _Connection) -> None:
        self.id = context_id
        self._connection = connection
        self._events: deque[Event] = deque()
        self._arrived = asyncio.Event()
        self._was_read = asyncio.Event()
        self._unread_bytes = 0
        self._is_started = False
        self._is_closing = False
        self._is_over = False
        self._error: SyrinxError | None = None

    async def send(self, text: str) -> None:
        """Appends text, in pieces of any size. Waits while the network is behind."""
        self._must_be_open()
        for start in range(0, len(text), _PIECE_CHARACTERS):
            await self._send({"send_text": text[start : start + _PIECE_CHARACTERS]})

    async def flush(self, flush_id: str | None = None) -> str:
        """Speaks the rest too. Its id comes back in `Flushed` when all of it has arrived; the next text continues."""
        flush_id = flush_id or str(uuid.uuid4())
        self._must_be_open()
        await self._send({"flush": True, "flush_id": flush_id})
        return flush_id

    async def close(self) -> None:
        """No more text: the service speaks the rest, then the loop over the events ends."""
        if not self._is_closing and not self._is_over:
            self._is_closing = True
            await self._send({"close_context": True})

    async def cancel(self) -> None:
        """Barge-in: ends at once and drops what arrived. Unspoken text is not charged."""
        self._events.clear()
        self._unread_bytes = 0
        if not self._is_over:
            self._end(None)
            await self._connection.send(self.id, {"cancel_context": True})

    def __aiter__(self) -> AsyncContext:
        return self

    async def __anext__(self) -> Event:
        while not self._events:
            if self._is_over:
                raise self._error or StopAsyncIteration
            self._arrived.clear()
            await self._arrived.wait()
        event = self._events.popleft()
        if isinstance(event, Audio):
            self._unread_bytes -= len(event.audio)
            self._was_read.set()
        return event

    async def __aenter__(self) -> AsyncContext:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.cancel()

    def _must_be_open(self) -> None:
        if self._is_closing or self._is_over:
            raise self._error or SyrinxError("closed", f"Context {self.id} is closed")

    async def _send(self, frame: dict[str, Any]) -> None:
        if not await self._connection.send(self.id, frame):
            raise self._error or SyrinxError("closed", f"Context {self.id} is closed")

    def _end(self, error: SyrinxError | None) -> None:
        self._is_over = True
        self._error = error
        self._arrived.set()
        self._was_read.set()

    def _push(self, event: Event) -> None:
        self._events.append(event)
        self._arrived.set()
        if isinstance(event, Audio):
            self._unread_bytes += len(event.audio)

    async def _has_room(self, bytes_max: int, stall_seconds: float) -> bool:
        """Waits until unread audio is within the bound; false if none of it is read for too long."""
        while self._unread_bytes > bytes_max and not self._is_over:
            self._was_read.clear()
            try:
                await asyncio.wait_for(self._was_read.wait(), stall_seconds)
            except asyncio.TimeoutError:
                return False
        return True


class _Connection:
    """One WebSocket, from its handshake to its end, and the contexts on it."""

    def __init__(self, socket: Any, client: AsyncSyrinx) -> None:
        self._socket = socket
        self._client = client
        self.contexts: dict[str, AsyncContext] = {}
        self.error: SyrinxError | None = None
        self._receiving: asyncio.Future[Any] = asyncio.ensure_future(socket.recv())
        self._reader: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, client: AsyncSyrinx) -> _Connection:
        timeout = client._connect_timeout_seconds
        # The pings below count all that arrives as a sign of life: a pong can be far behind unread audio.
        options = {"compression": None, "max_size": _MESSAGE_BYTES_MAX, "ping_interval": None, "open_timeout": timeout}
        options["close_timeout"] = 2
        try:
            socket = await _connect(client._socket_url, **options, **{_HEADERS: client._headers})
        except InvalidHandshake as error:
            response = getattr(error, "response", None)
            status = getattr(error, "status_code", None) or getattr(response, "status_code", None)
            if status is None:
                raise SyrinxError("unreachable", f"{client._socket_url}: {error}") from error
            raise _error_of_status(status, (getattr(response, "body", None) or b"").decode(errors="replace")) from error
        except (OSError, EOFError, asyncio.TimeoutError) as error:
            raise SyrinxError("unreachable", f"{client._socket_url} cannot be reached: {error!r}") from error
        connection = cls(socket, client)
        try:
            # The service takes any handshake, and refuses an unknown key after it: before it answers a ping.
            await connection._wait_for_life(at_once=True)
            if connection._receiving.done():
                await connection._receive()
        except Exception as error:
            await connection._finish(error)
            raise connection.error or error from None
        connection._reader = asyncio.ensure_future(connection._read())
        return connection

    async def send(self, context_id: str, frame: dict[str, Any]) -> bool:
        """False if the connection, and with it the context, has ended."""
        if self.error is None:
            try:
                await self._socket.send(json.dumps({**frame, "context_id": context_id}))
                return True
            except ConnectionClosed:
                # The reader learns it too, and says why.
                if self._reader is not None and self._reader is not asyncio.current_task():
                    await asyncio.wait({self._reader})
        return False

    async def close(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.wait({self._reader})
        await self._finish(SyrinxError("closed", "The client was closed"))

    async def _wait_for_life(self, at_once: bool = False) -> None:
        """Until a message is here, or (`at_once`) a ping is answered."""
        seconds = self._client._ping_interval_seconds
        if not at_once:
            await asyncio.wait({self._receiving}, timeout=seconds)
        while not self._receiving.done():
            pong = asyncio.ensure_future(self._pong())
            # Seen, or asyncio would report it: the reader says why the connection ended.
            pong.add_done_callback(lambda done: done.cancelled() or done.exception())
            await asyncio.wait({self._receiving, pong}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if not pong.done() and not self._receiving.done():
                pong.cancel()
                raise SyrinxError("connection_lost", f"The service did not answer a ping within {seconds} s")
            is_answered = pong.done() and not pong.cancelled() and pong.exception() is None
            if is_answered and at_once:
                return
            await asyncio.wait({self._receiving}, timeout=seconds)

    async def _pong(self) -> None:
        # A service that reads no more does not even take the ping.
        await (await self._socket.ping())

    async def _read(self) -> None:
        try:
            while True:
                await self._wait_for_life()
                await self._receive()
        except Exception as error:
            await self._finish(error)

    async def _receive(self) -> None:
        message = await self._receiving
        self._receiving = asyncio.ensure_future(self._socket.recv())
        frame = json.loads(message)
        context_id = frame.get("context_id")
        context = self.contexts.get(context_id)
        if "error" in frame:
            if context_id is None:
                _log.warning("the service reports: %s", frame["error"])
            await self._refused(frame["error"], context)
        elif context is None:
            return
        elif "context_closed" in frame:
            del self.contexts[context.id]
            context._end(context._error)
        elif "context_started" in frame:
            context._is_started = True
        elif not context._is_over:
            await self._deliver(frame, context)

    async def _deliver(self, frame: Mapping[str, Any], context: AsyncContext) -> None:
        if "audio_chunk" in frame:
            audio = base64.b64decode(frame["audio_chunk"], validate=True)
            if audio:
                context._push(Audio(audio))
            client = self._client
            if not await context._has_room(client._receive_buffer_bytes_max, client._consumer_stall_seconds):
                unread = f"Audio of context {context.id} was unread for {client._consumer_stall_seconds} s"
                await self._fail(context, SyrinxError("slow_consumer", unread))
        elif "timestamps" in frame:
            for word in _words_of(frame["timestamps"]):
                context._push(word)
        elif "flush_completed" in frame and frame["flush_id"] != f"{context.id}:close":
            context._push(Flushed(frame["flush_id"]))

    async def _refused(self, text: str, context: AsyncContext | None) -> None:
        error = _error_of_frame(text, context is None or context._is_started)
        if error.code == "invalid_api_key":
            raise error
        if context is None:
            return
        if context._is_over or not context._is_started:
            # The answer to a cancel that came too late, or to a start: nothing of it is left at the service.
            del self.contexts[context.id]
            if not context._is_over:
                context._end(error)
        else:
            # The service continues after some errors, but an utterance with a missing part is useless.
            await self._fail(context, error)

    async def _fail(self, context: AsyncContext, error: SyrinxError) -> None:
        context._end(error)
        await self.send(context.id, {"cancel_context": True})

    async def _finish(self, cause: Exception) -> None:
        if isinstance(cause, SyrinxError):
            # Not `cause` itself: its traceback holds the frames of the reader, which still runs.
            self.error = SyrinxError(cause.code, cause.args[0])
        elif isinstance(cause, ConnectionClosed):
            is_refusal = cause.rcvd is not None and cause.rcvd.code == _POLICY_VIOLATION
            lost = SyrinxError("connection_lost", f"The service closed the connection: {cause}")
            self.error = _error_of_frame("INVALID_API_KEY", False) if is_refusal else lost
        else:
            self.error = SyrinxError("protocol_error", f"The service sent an invalid frame: {cause!r}")
        if not self._receiving.cancel() and not self._receiving.cancelled():
            # Seen, or asyncio would report it.
            self._receiving.exception()
        for context in self.contexts.values():
            if not context._is_over:
                context._end(self.error)
        closing = asyncio.ensure_future(self._socket.close())
        if self.error.code == "closed":
            await asyncio.wait({closing}, timeout=self._client._ping_interval_seconds)
        if self._socket.transport is not None:
            # The other side may not answer a close any more, or read it.
            self._socket.transport.abort()
        await closing


class AsyncSyrinx:
    """A service. Its connection opens with the first context, or with `connect()`, and again after it was lost."""

    def __init__(
        self,
        url: str,
        api_key: str,
        *,
        headers: Mapping[str, str] | None = None,
        attempts_max: int = 8,
        connect_timeout_seconds: float = 10,
        request_timeout_seconds: float = 180,
        ping_interval_seconds: float = 15,
        receive_buffer_bytes_max: int = 4 * 1024 * 1024,
        consumer_stall_seconds: float = 20,
    ) -> None:
        """
        :param url: of the service: `http://host:8080`
        :param attempts_max: failed tries to connect in a row before `connect` or `context` raises
        :param receive_buffer_bytes_max: unread audio of a context, above which the connection stops reading
        :param consumer_stall_seconds: how long one context may hold up its connection before it fails
        """
        if not api_key:
            raise ValueError("api_key: set a key (svc_sk_...); there is none")
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"url: {url} does not begin with http:// or https://")
        url = url.rstrip("/")
        self._socket_url = f"ws{url[len('http') :]}/v1/tts/ws"
        self._headers = {**(headers or {}), "x-api-key": api_key}
        self._attempts_max = attempts_max
        self._connect_timeout_seconds = connect_timeout_seconds
        self._ping_interval_seconds = ping_interval_seconds
        self._receive_buffer_bytes_max = receive_buffer_bytes_max
        self._consumer_stall_seconds = consumer_stall_seconds
        timeout = httpx.Timeout(request_timeout_seconds, connect=connect_timeout_seconds)
        self._http = httpx.AsyncClient(base_url=url, headers=self._headers, timeout=timeout)
        self._connection: _Connection | None = None
        self._opening = asyncio.Lock()
        self._is_closed = False

    async def __aenter__(self) -> AsyncSyrinx:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Open contexts fail with `closed`."""
        self._is_closed = True
        if self._connection is not None:
            await self._connection.close()
        await self._http.aclose()

    async def voices(self) -> list[str]:
        """Ids of the voices that this key may use."""
        response = await self._request("GET", "/v1/tts/speakers", None)
        return list(response.json()["speaker_ids"])

    async def speak(
        self,
        text: str,
        voice: str,
        *,
        format: str | Format | None = None,
        timestamps: bool = False,
        temperature: float | None = None,
        normalize_text: bool = False,
    ) -> Speech:
        """Speaks a text into a whole file, mp3 unless you say otherwise."""
        options = _options(format, timestamps, temperature, normalize_text=normalize_text)
        body = {"text": text, "voice": voice, **options}
        answer = (await self._request("POST", "/v1/tts", body)).json()
        times = answer.get("timestamps")
        return Speech(base64.b64decode(answer["audio"]), _words_of(times) if times else [])

    async def stream(
        self,
        text: str,
        voice: str,
        *,
        format: str | Format | None = None,
        timestamps: bool = False,
        temperature: float | None = None,
        normalize_text: bool = False,
    ) -> AsyncIterator[Audio | Word]:
        """Speaks a text, and gives its audio and words as they are made. Close the iterator to stop early."""
        options = _options(format, timestamps, temperature, normalize_text=normalize_text)
        body = {"text": text, "voice": voice, **options}
        try:
            async with self._http.stream("POST", "/v1/tts/stream", json=body) as response:
                if response.status_code != 200:
                    raise _error_of_status(response.status_code, (await response.aread()).decode(errors="replace"))
                async for line in response.aiter_lines():
                    if not line.startswith("data: "):
                        continue
                    record = json.loads(line[len("data: ") :])
                    if record["type"] == "audio":
                        yield Audio(base64.b64decode(record["audio_chunk"]))
                    elif record["type"] == "timestamps":
                        for word in _words_of(record):
                            yield word
        except httpx.TransportError as error:
            raise _error_of_transport(error) from error

    async def connect(self) -> None:
        """Opens the connection now, so that the first context need not wait for it."""
        await self._connected()

    async def context(
        self,
        voice: str,
        *,
        format: str | Format | None = None,
        timestamps: bool = False,
        temperature: float | None = None,
        context_id: str | None = None,
    ) -> AsyncContext:
        """Opens a context, `pcm` at 32,000 Hz unless you say otherwise. It costs nothing until you send words."""
        start = {"voice_id": voice, "model_id": "default", **_options(format, timestamps, temperature)}
        connection = await self._connected()
        context = AsyncContext(context_id or str(uuid.uuid4()), connection)
        if context.id in connection.contexts:
            raise ValueError(f"context id {context.id} is in use")
        connection.contexts[context.id] = context
        await context._send({"start_context": start})
        return context

    async def _connected(self) -> _Connection:
        async with self._opening:
            failures = 0
            while self._connection is None or self._connection.error is not None:
                if self._is_closed:
                    raise SyrinxError("closed", "The client is closed")
                try:
                    self._connection = await _Connection.open(self)
                except SyrinxError as error:
                    failures += 1
                    if not error.retryable or failures >= self._attempts_max:
                        raise
                    await asyncio.sleep(backoff_seconds(failures))
            return self._connection

    async def _request(self, method: str, path: str, body: dict[str, Any] | None) -> httpx.Response:
        try:
            response = await self._http.request(method, path, json=body)
        except httpx.TransportError as error:
            raise _error_of_transport(error) from error
        if response.status_code != 200:
            raise _error_of_status(response.status_code, response.text)
        return response


def _error_of_transport(error: httpx.TransportError) -> SyrinxError:
    is_connect = isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout))
    return SyrinxError("unreachable" if is_connect else "connection_lost", repr(error))


class _Blocking:
    """Calls what belongs to an event loop, which runs in a thread of its own."""

    def __init__(self, inner: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._inner = inner
        self._loop = loop

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _iterate(self, events: AsyncIterator[_T]) -> Iterator[_T]:
        async def following() -> tuple[_T, ...]:
            async for event in events:
                return (event,)
            return ()

        async def leave() -> None:
            if isinstance(events, AsyncGenerator):
                await events.aclose()

        try:
            while event := self._run(following()):
                yield event[0]
        finally:
            self._run(leave())


def _blocking(
    method: Callable[Concatenate[Any, _P], Coroutine[Any, Any, _T]]
) -> Callable[Concatenate[_Blocking, _P], _T]:
    @functools.wraps(method)
    def call(self: _Blocking, /, *args: _P.args, **options: _P.kwargs) -> _T:
        return self._run(method(self._inner, *args, **options))

    return call


def _iterating(
    method: Callable[Concatenate[Any, _P], AsyncIterator[_T]]
) -> Callable[Concatenate[_Blocking, _P], Iterator[_T]]:
    @functools.wraps(method)
    def call(self: _Blocking, /, *args: _P.args, **options: _P.kwargs) -> Iterator[_T]:
        return self._iterate(method(self._inner, *args, **options))

    return call


class Context(_Blocking):
    """`AsyncContext` for programs without asyncio. `cancel` also ends a loop in another thread."""

    send = _blocking(AsyncContext.send)
    flush = _blocking(AsyncContext.flush)
    close = _blocking(AsyncContext.close)
    cancel = _blocking(AsyncContext.cancel)

    @property
    def id(self) -> str:
        return str(self._inner.id)

    def __iter__(self) -> Iterator[Event]:
        return self._iterate(self._inner)

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()


def _opening(
    method: Callable[Concatenate[Any, _P], Coroutine[Any, Any, AsyncContext]]
) -> Callable[Concatenate[_Blocking, _P], Context]:
    @functools.wraps(method)
    def call(self: _Blocking, /, *args: _P.args, **options: _P.kwargs) -> Context:
        return Context(self._run(method(self._inner, *args, **options)), self._loop)

    return call


class Syrinx(_Blocking):
    """`AsyncSyrinx` for programs without asyncio. Threads may share it."""

    def __init__(self, url: str, api_key: str, **options: Any) -> None:
        """:param options: those of `AsyncSyrinx`"""
        super().__init__(AsyncSyrinx(url, api_key, **options), asyncio.new_event_loop())
        self._thread = threading.Thread(target=self._loop.run_forever, name="syrinx", daemon=True)
        self._thread.start()

    voices = _blocking(AsyncSyrinx.voices)
    speak = _blocking(AsyncSyrinx.speak)
    stream = _iterating(AsyncSyrinx.stream)
    connect = _blocking(AsyncSyrinx.connect)
    context = _opening(AsyncSyrinx.context)

    def close(self) -> None:
        """Open contexts fail with `closed`."""
        if self._thread.is_alive():
            self._run(self._inner.close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def __enter__(self) -> Syrinx:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
