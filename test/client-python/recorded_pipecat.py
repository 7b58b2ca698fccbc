"""What syrinx_pipecat.py uses of Pipecat, for machines where Pipecat cannot be installed.

Recorded from Pipecat 1.7.0 (github.com/pipecat-ai/pipecat, commit acead05, BSD-2-Clause): names, signatures, and in which
order its `TTSService` calls its subclass and hands on frames in TOKEN mode. `install()` puts it in the place of `pipecat`.
"""

import asyncio
import sys
import types
import uuid
from dataclasses import dataclass
from enum import StrEnum


class Frame:
    pass


def _frame(name, *fields, base=Frame):
    """A class of frames, made from its fields in order or by name."""

    def init(self, *values, **named):
        for field in (*fields, "context_id"):
            setattr(self, field, named.get(field))
        for field, value in zip(fields, values):
            setattr(self, field, value)

    return type(name, (base,), {"__init__": init})


StartFrame = _frame("StartFrame")
EndFrame = _frame("EndFrame")
CancelFrame = _frame("CancelFrame")
ErrorFrame = _frame("ErrorFrame", "error")
InterruptionFrame = _frame("InterruptionFrame")
LLMFullResponseStartFrame = _frame("LLMFullResponseStartFrame")
LLMFullResponseEndFrame = _frame("LLMFullResponseEndFrame")
LLMTextFrame = _frame("LLMTextFrame", "text")
TTSSpeakFrame = _frame("TTSSpeakFrame", "text")
TTSStartedFrame = _frame("TTSStartedFrame")
TTSStoppedFrame = _frame("TTSStoppedFrame")
TTSTextFrame = _frame("TTSTextFrame", "text")
TTSAudioRawFrame = _frame("TTSAudioRawFrame", "audio", "sample_rate", "num_channels")
SleepFrame = _frame("SleepFrame", "sleep")


@dataclass
class FrameProcessorSetup:
    audio_out_sample_rate: int = 24_000


class TextAggregationMode(StrEnum):
    SENTENCE = "sentence"
    TOKEN = "token"


@dataclass
class TTSSettings:
    model: str | None = None
    voice: str | None = None
    language: str | None = None

    def apply_update(self, delta):
        for name in ("model", "voice", "language"):
            if getattr(delta, name) is not None:
                setattr(self, name, getattr(delta, name))


class TTSService:
    def __init__(
        self,
        *,
        text_aggregation_mode=None,
        push_text_frames=True,
        push_start_frame=False,
        append_trailing_space=False,
        sample_rate=None,
        settings=None,
    ):
        # The rest is recorded for these only.
        assert text_aggregation_mode is TextAggregationMode.TOKEN and push_start_frame and not push_text_frames
        self._settings = settings
        self._init_sample_rate = sample_rate
        self._audio_contexts = {}
        self._queue = asyncio.Queue()
        self._playing = None
        self._turn_context_id = None
        self.pushed = []

    @property
    def sample_rate(self):
        return self._sample_rate

    async def setup(self, setup):
        self._sample_rate = self._init_sample_rate or setup.audio_out_sample_rate

    async def start(self, frame):
        self._playing = self.create_task(self._play())

    async def stop(self, frame):
        await self._queue.put(None)
        await self._playing

    async def cancel(self, frame):
        await self.cancel_task(self._playing)

    async def cleanup(self):
        await self.cancel_task(self._playing)

    def create_task(self, coroutine):
        return asyncio.create_task(coroutine)

    async def cancel_task(self, task):
        task.cancel()
        await asyncio.wait({task})

    async def push_error(self, error_msg, exception=None):
        self.pushed.append(ErrorFrame(error_msg))

    async def _call_event_handler(self, name, *arguments):
        pass

    async def stop_all_metrics(self):
        pass

    async def start_tts_usage_metrics(self, text):
        pass

    async def on_audio_context_interrupted(self, context_id):
        pass

    def audio_context_available(self, context_id):
        return context_id in self._audio_contexts

    def get_active_audio_context_id(self):
        return self._turn_context_id

    async def append_to_audio_context(self, context_id, frame):
        if self.audio_context_available(context_id):
            await self._audio_contexts[context_id].put(frame)

    async def remove_audio_context(self, context_id):
        await self.append_to_audio_context(context_id, None)

    async def add_word_timestamps(self, word_times, context_id=None):
        for word, _ in word_times:
            await self.append_to_audio_context(context_id, TTSTextFrame(word, context_id=context_id))

    async def _play(self):
        while (item := await self._queue.get()) is not None:
            if isinstance(item, Frame):
                self.pushed.append(item)
                continue
            while (frame := await self._audio_contexts[item].get()) is not None:
                self.pushed.append(frame)
            del self._audio_contexts[item]

    async def _speak(self, text):
        context_id = self._turn_context_id
        if not self.audio_context_available(context_id):
            await self._queue.put(context_id)
            self._audio_contexts[context_id] = asyncio.Queue()
            await self.append_to_audio_context(context_id, TTSStartedFrame(context_id=context_id))
        async for frame in self.run_tts(text, context_id):
            if frame:
                await self.append_to_audio_context(context_id, frame)

    async def _complete_turn(self):
        if self._turn_context_id and self.audio_context_available(self._turn_context_id):
            await self.flush_audio(context_id=self._turn_context_id)
        self._turn_context_id = None

    async def process_frame(self, frame):
        if isinstance(frame, StartFrame):
            await self.start(frame)
        elif isinstance(frame, LLMFullResponseStartFrame):
            self._turn_context_id = str(uuid.uuid4())
            await self._queue.put(frame)
        elif isinstance(frame, LLMTextFrame):
            await self._speak(frame.text)
        elif isinstance(frame, LLMFullResponseEndFrame):
            await self._complete_turn()
            await self._queue.put(frame)
        elif isinstance(frame, TTSSpeakFrame):
            self._turn_context_id = str(uuid.uuid4())
            await self._speak(frame.text)
            await self._complete_turn()
        elif isinstance(frame, InterruptionFrame):
            await self.cancel_task(self._playing)
            self._queue = asyncio.Queue()
            for context_id in list(self._audio_contexts):
                await self.on_audio_context_interrupted(context_id=context_id)
            self._audio_contexts = {}
            self._turn_context_id = None
            self._playing = self.create_task(self._play())
            self.pushed.append(frame)
        elif isinstance(frame, EndFrame):
            await self.stop(frame)


async def run_test(processor, *, frames_to_send):
    """Returns what goes downstream, and what goes upstream."""
    await processor.setup(FrameProcessorSetup())
    for frame in (StartFrame(), *frames_to_send, EndFrame()):
        if isinstance(frame, SleepFrame):
            await asyncio.sleep(frame.sleep)
        else:
            await processor.process_frame(frame)
    await processor.cleanup()
    errors = [frame for frame in processor.pushed if isinstance(frame, ErrorFrame)]
    return [frame for frame in processor.pushed if frame not in errors], errors


def install():
    for name in (
        "pipecat", "pipecat.frames", "pipecat.frames.frames", "pipecat.processors", "pipecat.processors.frame_processor",
        "pipecat.services", "pipecat.services.settings", "pipecat.services.tts_service", "pipecat.tests",
        "pipecat.tests.utils",
    ):  # fmt: skip
        module = types.ModuleType(name)
        module.__dict__.update(globals())
        sys.modules[name] = module
