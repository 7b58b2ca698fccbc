"""syrinx_pipecat.py in Pipecat, or in what was recorded of it, against a running service: SYRINX_URL, SYRINX_KEY, SYRINX_PAGE."""

import asyncio
import os
import pathlib
import re
import unittest

try:
    import pipecat
except ImportError:
    import recorded_pipecat

    recorded_pipecat.install()
    print("Pipecat: the recorded interface of 1.7.0")
else:
    print("Pipecat: the real one,", pipecat.__version__ if hasattr(pipecat, "__version__") else "")

from pipecat.frames.frames import (
    InterruptionFrame, LLMFullResponseEndFrame, LLMFullResponseStartFrame, LLMTextFrame, TTSAudioRawFrame, TTSSpeakFrame,
    TTSStartedFrame, TTSStoppedFrame, TTSTextFrame,
)  # fmt: skip
from pipecat.tests.utils import SleepFrame, run_test
from syrinx_pipecat import SyrinxTTSService

URL, KEY = os.environ["SYRINX_URL"], os.environ["SYRINX_KEY"]


def service(**options):
    return SyrinxTTSService(**{"url": URL, "api_key": KEY, "voice": "wren", "sample_rate": 24_000, **options})


def words_of(frames):
    return [frame.text for frame in frames if isinstance(frame, TTSTextFrame)]


def audio_of(frames):
    return b"".join(frame.audio for frame in frames if isinstance(frame, TTSAudioRawFrame))


class PipecatTest(unittest.IsolatedAsyncioTestCase):
    async def test_an_answer_in_tokens_is_one_context_with_all_words_between_start_and_stop(self):
        tokens = ["Good", " morning", ", the ket", "tle is on"]
        answer = [LLMFullResponseStartFrame(), *map(LLMTextFrame, tokens), LLMFullResponseEndFrame()]
        tts = service()
        down, up = await run_test(tts, frames_to_send=[*answer, SleepFrame(1)])
        self.assertEqual(words_of(down), ["Good", "morning,", "the", "kettle", "is", "on"])
        self.assertGreater(len(audio_of(down)), 48_000, "more than a second at 24 kHz")
        self.assertEqual({frame.sample_rate for frame in down if isinstance(frame, TTSAudioRawFrame)}, {24_000})
        kinds = [frame for frame in down if isinstance(frame, (TTSStartedFrame, TTSStoppedFrame, TTSAudioRawFrame))]
        self.assertIsInstance(kinds[0], TTSStartedFrame)
        self.assertIsInstance(kinds[-1], TTSStoppedFrame)
        self.assertEqual(sum(isinstance(frame, TTSStoppedFrame) for frame in down), 1)
        self.assertEqual(list(up), [])

    async def test_an_interruption_drops_the_answer_and_the_next_one_is_spoken(self):
        long = [LLMTextFrame("This is a long sentence and nobody hears all of it, ") for _ in range(200)]
        down, _ = await run_test(
            service(),
            frames_to_send=[
                LLMFullResponseStartFrame(), *long, SleepFrame(1), InterruptionFrame(), SleepFrame(0.3),
                LLMFullResponseStartFrame(), LLMTextFrame("Yes, of course"), LLMFullResponseEndFrame(), SleepFrame(1),
            ],  # fmt: skip
        )
        at = next(index for index, frame in enumerate(down) if isinstance(frame, InterruptionFrame))
        self.assertEqual(words_of(down[at:]), ["Yes,", "of", "course"])
        seconds = len(audio_of(down[at:])) / 48_000
        self.assertTrue(0.4 < seconds < 3, f"{seconds} s: nothing of the first answer")

    async def test_errors_of_the_service_are_errors_of_the_pipeline(self):
        for options, code in (({"voice": "nosuch"}, "unknown_voice"), ({"api_key": "svc_sk_" + "x" * 43}, "invalid_api_key")):
            down, up = await run_test(service(**options), frames_to_send=[TTSSpeakFrame("Hello."), SleepFrame(0.5)])
            self.assertIn(code, up[0].error)
            self.assertEqual(audio_of(down), b"")

    async def test_the_example_of_the_page_speaks(self):
        page = pathlib.Path(os.environ["SYRINX_PAGE"]).read_text("utf-8")
        code = next(block for block in re.findall(r"```python\n(.*?)```", page, re.S) if "SyrinxTTSService" in block)
        names = {}
        exec(code.replace("http://127.0.0.1:8080", URL), names)
        down, up = await run_test(names["tts"], frames_to_send=[TTSSpeakFrame("Hello there"), SleepFrame(1)])
        self.assertEqual((words_of(down), list(up)), (["Hello", "there"], []))

    def test_a_voice_is_needed(self):
        with self.assertRaisesRegex(ValueError, "^voice: "):
            service(voice=None)


if __name__ == "__main__":
    unittest.main(verbosity=2)
