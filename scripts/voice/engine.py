"""Renders through the service's own engine: JSON lines to and from `node dist/scripts/voice/render.js`.

BUILD names another folder than dist with the compiled service, for instance that of a former version; MODELS_DIR another than models.
"""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from measures import SAMPLE_RATE
from recogniser import SpokenWord

REPOSITORY = Path(__file__).resolve().parents[2]
NODE = REPOSITORY / "node_modules" / "node" / "bin" / "node"  # the service's own runtime
RENDER = REPOSITORY / os.environ.get("BUILD", "dist") / "scripts" / "voice" / "render.js"
MODEL = Path(os.environ.get("MODELS_DIR", REPOSITORY / "models")) / "syrinx-en"
DEFAULT = "wren"


@dataclass(frozen=True)
class SpokenPhone:
    phone: str
    start: int  # samples
    end: int

    @property
    def seconds(self) -> float:
        return (self.end - self.start) / SAMPLE_RATE


@dataclass
class Rendered:
    wave: Path
    text: str
    samples: int
    words: list[SpokenWord]
    phones: list[SpokenPhone]
    seams: list[int]  # samples at which a segment follows another
    chunks: list[int]  # samples at which a chunk follows another of its segment
    first_chunk_ms: float
    compute_ms: float
    load_ms: float

    @property
    def seconds(self) -> float:
        return self.samples / SAMPLE_RATE


@dataclass
class Request:
    id: str
    voice: str
    text: str
    seed: int = 1
    temperature: float = 1
    long: bool = False
    uncut: bool = False  # one segment, whatever its length
    early: bool = False  # cut as the text of a WebSocket
    raw: bool = False  # writes the float samples beside the wave file, too

    def line(self, folder: Path) -> str:
        item: dict[str, object] = {"id": self.id, "voice": self.voice, "text": self.text, "seed": self.seed}
        item |= {"temperature": self.temperature, "out": str(folder / f"{self.id}.wav"), "long": self.long}
        item |= {"uncut": self.uncut, "early": self.early}
        if self.raw:
            item["f32"] = str(folder / f"{self.id}.f32")
        return json.dumps(item) + "\n"


def render(requests: list[Request], folder: Path) -> list[Rendered]:
    """Renders all requests in one process, in order."""
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(request.line(folder) for request in requests)
    process = subprocess.run([str(NODE), str(RENDER)], input=lines, stdout=subprocess.PIPE, text=True, check=True, cwd=REPOSITORY)
    answers = {answer["id"]: answer for answer in map(json.loads, process.stdout.splitlines())}
    results = []
    for request in requests:
        answer = answers[request.id]
        words = [
            SpokenWord(word["word"], word["startSample"] / SAMPLE_RATE, word["endSample"] / SAMPLE_RATE)
            for word in answer["words"]
        ]
        # Former versions give neither phones nor chunks.
        phones = [SpokenPhone(one["phone"], one["startSample"], one["endSample"]) for one in answer.get("phones", [])]
        times = (answer["firstChunkMs"], answer["computeMs"], answer["loadMs"])
        wave = folder / f"{request.id}.wav"
        places = (answer["seams"], answer.get("chunks", []))
        results.append(Rendered(wave, request.text, answer["samples"], words, phones, *places, *times))
    return results


def raw_samples(rendered: Rendered) -> NDArray[np.float32]:
    return np.fromfile(rendered.wave.with_suffix(".f32"), np.float32)


def voice_ids() -> list[str]:
    """The voices, the default first."""
    return [speaker["id"] for speaker in json.loads((MODEL / "manifest.json").read_text(encoding="utf-8"))["speakers"]]
