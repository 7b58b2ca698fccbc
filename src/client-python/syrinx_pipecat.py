"""A text-to-speech service of Pipecat (1.7) on top of the client of syrinx. README.md beside this file shows its use."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

from pipecat.frames.frames import CancelFrame, EndFrame, Frame, TTSAudioRawFrame, TTSStoppedFrame
from pipecat.processors.frame_processor import FrameProcessorSetup
from pipecat.services.settings import TTSSettings
from pipecat.services.tts_service import TextAggregationMode, TTSService
from syrinx_client import AsyncContext, AsyncSyrinx, Audio, Format, SyrinxError, Word


class SyrinxTTSService(TTSService):
    """Speaks tokens as the model writes them, with the times of words, and stops at once when it is interrupted.

    The transcript of an interrupted answer ends where the listener stopped hearing it.
    """

    def __init__(
        self,
        *,
        url: str,
        api_key: str,
        voice: str | None = None,
        temperature: float | None = None,
        settings: TTSSettings | None = None,
        text_aggregation_mode: TextAggregationMode = TextAggregationMode.TOKEN,
        **options: Any,
    ) -> None:
        """
        :param voice: or that of `settings`, which `TTSUpdateSettingsFrame` changes from the next answer on
        :param temperature: from 0.5 (even) to 3 (lively)
        :param options: those of Pipecat's `TTSService`, as `sample_rate`
        """
        own = TTSSettings(model=None, voice=voice, language=None)
        if settings is not None:
            own.apply_update(settings)
        if not own.voice:
            raise ValueError("voice: set the id of a voice")
        super().__init__(
            settings=own,
            text_aggregation_mode=text_aggregation_mode,
            append_trailing_space=True,
            push_start_frame=True,
            # The words become the text frames.
            push_text_frames=False,
            **options,
        )
        self._client = AsyncSyrinx(url, api_key)
        self._temperature = temperature
        self._syrinx_contexts: dict[str, AsyncContext] = {}
        self._readers: dict[str, Any] = {}

    def can_generate_metrics(self) -> bool:
        return True

    @property
    def supports_processing_metrics(self) -> bool:
        return False  # `run_tts` only hands the text on.

    async def setup(self, setup: FrameProcessorSetup) -> None:
        await super().setup(setup)
        try:
            await self._client.connect()
            await self._call_event_handler("on_connected")
        except SyrinxError as error:
            await self._report(error)

    async def stop(self, frame: EndFrame) -> None:
        await super().stop(frame)
        await self._disconnect()

    async def cancel(self, frame: CancelFrame) -> None:
        await super().cancel(frame)
        await self._disconnect()

    async def cleanup(self) -> None:
        await super().cleanup()
        await self._disconnect()

    async def run_tts(self, text: str, context_id: str) -> AsyncGenerator[Frame | None, None]:
        try:
            context = self._syrinx_contexts.get(context_id)
            if context is None:
                context = await self._client.context(
                    str(self._settings.voice),
                    format=Format("pcm", sample_rate_hz=self.sample_rate),
                    timestamps=True,
                    temperature=self._temperature,
                )
                self._syrinx_contexts[context_id] = context
                self._readers[context_id] = self.create_task(self._read(context, context_id))
            await context.send(text)
            await self.start_tts_usage_metrics(text)
        except SyrinxError as error:
            # A context that has opened reports its error when it is read.
            if context_id not in self._syrinx_contexts:
                await self._report(error)
                await self._finish(context_id)
        # The audio comes by itself.
        yield None

    async def flush_audio(self, context_id: str | None = None) -> None:
        """The answer is complete."""
        context = self._syrinx_contexts.get(context_id or self.get_active_audio_context_id() or "")
        if context is not None:
            # Its reader reports the error.
            with suppress(SyrinxError):
                await context.close()

    async def on_audio_context_interrupted(self, context_id: str) -> None:
        await self.stop_all_metrics()
        reader = self._readers.pop(context_id, None)
        context = self._syrinx_contexts.pop(context_id, None)
        if reader is not None:
            await self.cancel_task(reader)
        if context is not None:
            await context.cancel()
        await super().on_audio_context_interrupted(context_id)

    async def _read(self, context: AsyncContext, context_id: str) -> None:
        try:
            async for event in context:
                if isinstance(event, Audio):
                    frame = TTSAudioRawFrame(event.audio, self.sample_rate, 1, context_id=context_id)
                    await self.append_to_audio_context(context_id, frame)
                elif isinstance(event, Word):
                    await self.add_word_timestamps([(event.word, event.start_seconds)], context_id)
        except SyrinxError as error:
            await self._report(error)
        self._readers.pop(context_id, None)
        self._syrinx_contexts.pop(context_id, None)
        await self._finish(context_id)

    async def _finish(self, context_id: str) -> None:
        if self.audio_context_available(context_id):
            await self.append_to_audio_context(context_id, TTSStoppedFrame(context_id=context_id))
            await self.remove_audio_context(context_id)

    async def _report(self, error: SyrinxError) -> None:
        await self._call_event_handler("on_connection_error", str(error))
        await self.push_error(f"syrinx: {error}", exception=error)

    async def _disconnect(self) -> None:
        for context_id in list(self._readers):
            await self.on_audio_context_interrupted(context_id)
        await self._client.close()
