#!/usr/bin/python3
"""Her F0, voicing and durations with envelopes of several kinds, through the committed decoder: wave files to score.

    yardstick.py FOLDER KIND...     writes FOLDER/KIND/NAME.wav for 48 recordings that no training uses and no final figure needs

Kinds: `recording`, `own` (her envelopes), `committed` (the committed graphs' envelopes, sharpened), and `NAME:STEPS[:TEMPERATURE]`, a
checkpoint of flow_training.py with so many steps; 0 steps are its mean.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import shutil
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from numpy.typing import NDArray

from batches import LOG_F0, VOICING, frame_positions
from dataset import Example
from engine import MODEL
from fine import sharpened
from flow import TEMPERATURE, PeopleModel, rows_between
from flow_data import FIRST_PERSON, Data
from model import PITCH_VALUES
from recordings import SAMPLE_RATE, WORK
from wave_file import write_wave

SENTENCES = 48
CONTEXT, DELAY, TAIL, HOP = 4, 180, 600, 120  # of decoder.py
SEED = 1

Floats = NDArray[np.float32]


def session(name: str) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(MODEL / f"{name}.onnx"), options)


class Decode:
    def __init__(self) -> None:
        self.graph = session("decoder")

    def __call__(self, rows: Floats) -> Floats:
        edge = np.concatenate([rows[:1].repeat(CONTEXT, 0), rows, rows[-1:].repeat(CONTEXT, 0)]).astype(np.float32)
        inputs = {
            "f0": np.exp(edge[:, LOG_F0]), "voicing": edge[:, VOICING], "bands": edge[:, PITCH_VALUES:],
            "phase": np.zeros(1, np.float32), "pulses": np.zeros(HOP, np.float32), "noise": np.zeros(HOP, np.float32),
            "tail": np.zeros(TAIL, np.float32), "frameIndex": np.zeros(1, np.int64), "warp": np.ones(1, np.float32),
        }  # fmt: skip
        pcm, *_, tail, _ = self.graph.run(["pcm", "phaseOut", "pulsesOut", "noiseOut", "tailOut", "frameIndexOut"], inputs)
        return np.concatenate([pcm, tail])[DELAY : DELAY + len(pcm)]


class Committed:
    def __init__(self) -> None:
        self.encoder, self.frames = session("encoder"), session("frames")

    def __call__(self, example: Example) -> Floats:
        hidden = self.encoder.run(["hidden"], {"ids": example.ids, "place": example.place, "style": example.style})[0]
        index, position = frame_positions(example.durations)
        noise = np.random.RandomState(SEED).randn(4, len(index)).astype(np.float32)
        inputs = {"hidden": hidden, "index": index, "position": position.T.copy(), "noise": noise, "edges": np.ones(2, np.int64)}
        inputs["speaker"] = np.array([[1, 0, 0, 0]], np.float32)
        bands, lack = np.split(self.frames.run(["bands"], inputs)[0], 2, 1)
        return sharpened(example.rows[:, VOICING], bands, lack)


class Flow:
    """A checkpoint's envelopes of the first person."""

    def __init__(self, name: str, data: Data, work: Path = WORK) -> None:
        saved = torch.load(work / f"flow-{name}.pt", weights_only=False)
        self.data, self.model = data, PeopleModel()
        self.model.load_state_dict(saved["model"])
        self.model.eval()

    def __call__(self, example: Example, steps: int, temperature: float) -> Floats:
        batch, model = self.data.collate([example]), self.model
        torch.manual_seed(SEED)
        with torch.no_grad():
            hidden, _, _ = model.encode(batch.said)
            if steps > 0:
                frames = model.draw_envelopes(batch.said, hidden, batch.pitch, steps, temperature)
            else:
                frames = model.envelope_condition(batch.said, hidden, batch.pitch)[1].mean
            rows = rows_between(frames)[0].numpy()
        bands = rows * self.data.deviation[PITCH_VALUES:] + self.data.mean[PITCH_VALUES:]
        return sharpened(example.rows[:, VOICING].astype(np.float32), bands)


def write_kind(folder: Path, kind: str, data: Data, examples: list[Example]) -> None:
    target = folder / kind.replace(":", "_")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    decode = Decode()
    name, *options = kind.split(":")
    if name in ("recording", "own"):
        envelopes = None
    elif name == "committed":
        envelopes = Committed()
    else:
        flow = Flow(name, data)
        steps, temperature = int(options[0]), float(options[1]) if len(options) > 1 else TEMPERATURE
        envelopes = lambda one: flow(one, steps, temperature)  # noqa: E731
    for example in examples:
        if name == "recording":
            shutil.copyfile(WORK / "wav" / f"{example.name}.wav", target / f"{example.name}.wav")
            continue
        rows = example.rows.astype(np.float32)
        if envelopes:
            rows[:, PITCH_VALUES:] = envelopes(example)
        write_wave(target / f"{example.name}.wav", decode(rows), SAMPLE_RATE)


def main(folder: Path, kinds: list[str]) -> None:
    torch.set_num_threads(1)
    data = Data([FIRST_PERSON])
    examples = sorted(data.people[0].tuning, key=lambda one: one.name)[:SENTENCES]
    for kind in kinds:
        write_kind(folder, kind, data, examples)
        print(f"{kind}: {len(examples)}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
