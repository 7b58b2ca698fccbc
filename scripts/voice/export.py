#!/usr/bin/python3
"""Writes the voice into a folder: three ONNX graphs and the manifest that the service reads. `export.py [WORK [FOLDER]]`."""

import copy
import hashlib
import json
import sys
from math import log
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import decoder
from acoustic import load_model, predict
from batches import LOG_F0, VOICING, Statistics
from dataset import FRAME_ROWS, SPEAKERS, STYLES, load, usual_durations
from fine import fine_filter
from model import (
    BANDS,
    ENCODER_DILATIONS,
    ENVELOPE_DILATIONS,
    HIDDEN,
    NOISES,
    PITCH_DILATIONS,
    PITCH_VALUES,
    PLACES,
    POSITIONS,
    SHARED_DILATIONS,
    Block,
    Encoder,
    FrameNet,
    reach,
)
from phonemes import PAUSE, PHONE, STRESS, phone_set
from voices import VOICES

HERE = Path(__file__).resolve().parent
MODEL = HERE.parents[1] / "models" / "syrinx-en"
NAME = "syrinx-en"
OPERATORS = 15
FRAME_MARGIN = reach(SHARED_DILATIONS) + reach(PITCH_DILATIONS)
assert reach(PITCH_DILATIONS) == reach(ENVELOPE_DILATIONS), "both outputs of a window must have the same frames"
DURATION_STRETCH = 1.4
LEAST_FRAMES, MOST_FRAMES = 0.5, 200.0
LEAST_SPREAD, MOST_SPREAD = 0.05, 0.8
LEAST_F0_HZ, MOST_F0_HZ = 60.0, 600.0
LEAST_BAND, MOST_BAND = -16.0, 4.0
FINE_STEP = 12  # of the recordings, those that show what fine structure is lacking


class EncoderGraph(nn.Module):
    """ids [4, L], place [2, L], style [4, L] -> hidden [1, H, L], duration [L] in frames, and its spread.

    The net's means differ less from what is usual for a phone than the person's durations do, as those of all nets with the least
    error: the difference is stretched.
    """

    def __init__(self, encoder: Encoder, usual: NDArray[np.float64]) -> None:
        super().__init__()
        self.encoder = encoder
        self.register_buffer("usual", torch.tensor(usual, dtype=torch.float32))

    def forward(self, ids: Tensor, place: Tensor, style: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        inputs = (values.transpose(0, 1).unsqueeze(0) for values in (ids, place, style))
        hidden, log_duration, log_spread = self.encoder(*inputs, None)
        usual = self.usual[2 * ids[PHONE] + ids[STRESS]]
        stretched = usual + DURATION_STRETCH * (log_duration[0] - usual)
        log_duration = torch.where(ids[PHONE] == PAUSE, log_duration[0], stretched)
        duration = torch.clamp(torch.exp(log_duration), LEAST_FRAMES, MOST_FRAMES)
        return hidden.transpose(1, 2), duration, torch.clamp(torch.exp(log_spread[0]), LEAST_SPREAD, MOST_SPREAD)


class WindowBlock(nn.Module):
    """A block of a window: it takes `edges` in the place of the mask.

    Where the utterance goes on, its output is shorter by its reach: no frame is computed that no other frame needs.
    """

    def __init__(self, block: Block) -> None:
        super().__init__()
        self.block = block
        self.register_buffer("silence", torch.zeros(1, block.reach, HIDDEN))

    def forward(self, values: Tensor, edges: Tensor, manner: Tensor | None = None) -> Tensor:
        block, (before, after) = self.block, edges.unbind()
        normed = block.normed(values, manner)
        padded = torch.cat([self.silence[:, : block.reach * before], normed, self.silence[:, : block.reach * after]], 1)
        kept = values[:, block.reach * (1 - before) : values.shape[1] - block.reach * (1 - after)]
        return kept + block.change(padded)


class FrameGraph(nn.Module):
    """hidden [1, H, L], index [T], position [4, T], noise [4, T], speaker [1, S], edges [2] -> the decoder's rows, two for each frame.

    `edges`: 1 where the window begins and ends with the utterance, 0 where it has the margin, which is not in the output.
    """

    def __init__(self, frame_net: FrameNet, statistics: Statistics, fine: NDArray[np.float32]) -> None:
        super().__init__()
        self.frame_net = copy.deepcopy(frame_net)
        for name in ("shared", "pitch_blocks", "envelope_blocks"):
            setattr(self.frame_net, name, nn.ModuleList(map(WindowBlock, getattr(self.frame_net, name))))
        self.register_buffer("mean", torch.from_numpy(statistics.mean))
        self.register_buffer("deviation", torch.from_numpy(statistics.deviation))
        self.register_buffer("fine", torch.from_numpy(fine))

    def forward(
        self, hidden: Tensor, index: Tensor, position: Tensor, noise: Tensor, speaker: Tensor, edges: Tensor
    ) -> tuple[Tensor, ...]:
        spread = torch.index_select(hidden.transpose(1, 2), 1, index)
        inputs = (values.transpose(0, 1).unsqueeze(0) for values in (position, noise))
        trunk = self.frame_net.trunk(spread, *inputs, edges)
        pitch = self.frame_net.pitch_rows(trunk, edges)[0]
        log_f0 = pitch[:, LOG_F0] * self.deviation[LOG_F0] + self.mean[LOG_F0]
        bands = self.frame_net.envelope_rows(trunk, speaker, edges)[0]
        bands = bands * self.deviation[PITCH_VALUES:] + self.mean[PITCH_VALUES:]
        bands = torch.clamp(bands, LEAST_BAND, MOST_BAND)
        f0 = torch.exp(torch.clamp(log_f0, log(LEAST_F0_HZ), log(MOST_F0_HZ)))
        return f0, torch.sigmoid(pitch[:, VOICING]), torch.cat([bands, bands @ self.fine], 1)


def export_nets(encoder: EncoderGraph, frames_graph: FrameGraph, folder: Path) -> None:
    phones, frames = 20, 50
    ids = torch.zeros(4, phones, dtype=torch.int64)
    torch.onnx.export(
        encoder.eval(),
        (ids, torch.zeros(PLACES, phones), torch.zeros(len(STYLES), phones)),
        str(folder / "encoder.onnx"),
        input_names=["ids", "place", "style"],
        output_names=["hidden", "duration", "durationSpread"],
        opset_version=OPERATORS,
        dynamic_axes={
            **{name: {1: "phones"} for name in ("ids", "place", "style")},
            "hidden": {2: "phones"},
            **{name: {0: "phones"} for name in ("duration", "durationSpread")},
        },
    )
    hidden, index = torch.zeros(1, HIDDEN, phones), torch.zeros(frames, dtype=torch.int64)
    position, noise = torch.zeros(POSITIONS, frames), torch.zeros(NOISES, frames)
    speaker, edges = torch.tensor([[1.0] + [0.0] * (len(SPEAKERS) - 1)]), torch.tensor([1, 0])
    torch.onnx.export(
        frames_graph.eval(),
        (hidden, index, position, noise, speaker, edges),
        str(folder / "frames.onnx"),
        input_names=["hidden", "index", "position", "noise", "speaker", "edges"],
        output_names=["f0", "voicing", "bands"],
        opset_version=OPERATORS,
        dynamic_axes={
            "hidden": {2: "phones"},
            "index": {0: "frames"},
            **{name: {1: "frames"} for name in ("position", "noise")},
            **{name: {0: "rows"} for name in ("f0", "voicing", "bands")},
        },
    )


def file_entry(path: Path) -> dict[str, object]:
    content = path.read_bytes()
    return {"path": path.name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def style_entry(style: dict) -> dict[str, object]:
    """How clauses differ: the engine draws from it."""
    terminals = style["terminals"]
    weights = [one["clauses"] for one in terminals]
    correlation = np.average([one["correlation"] for one in terminals], 0, weights)
    values = {"means": "mean", "deviations": "deviation"}
    return {"correlation": correlation.round(3).tolist(), **{name: [one[key] for one in terminals] for name, key in values.items()}}


def gains_of(path: Path) -> dict[str, float]:
    """The levels that an earlier manifest has: levels.py begins with them and measures again."""
    if not path.exists():
        return {}
    return {speaker["id"]: speaker["gain"] for speaker in json.loads(path.read_text(encoding="utf-8"))["speakers"]}


def write_manifest(statistics: Statistics, style: dict, work: Path, folder: Path) -> None:
    path = folder / "manifest.json"
    gains = gains_of(path)
    manifest = {
        "format": "syrinx-4",
        "name": NAME,
        "language": "en",
        "sampleRateHz": decoder.SAMPLE_RATE,
        "licence": "Apache-2.0; trained on recordings under CC0 1.0 and on the output of flite's CMU voices, see NOTICE",
        "files": {part: file_entry(folder / f"{part}.onnx") for part in ("encoder", "frames", "decoder")},
        "phones": phone_set(work).names,
        "frame": {"durationMs": 10, "rows": FRAME_ROWS, "rowSamples": decoder.HOP},
        "margins": {"phones": reach(ENCODER_DILATIONS), "frames": FRAME_MARGIN, "rows": decoder.CONTEXT},
        "sizes": {
            "hidden": HIDDEN,
            "style": len(STYLES),
            "noise": NOISES,
            "bands": BANDS,
            "pulses": decoder.PULSES,
            "decoderNoise": decoder.NOISE,
            "tail": decoder.TAIL,
        },
        "decoderDelaySamples": decoder.DELAY,
        # What `liveliness` and `temperature` scale excursions about: the person's, whose prosody all voices have.
        "trainingF0": {"logMean": round(float(statistics.mean[LOG_F0]), 4)},
        "trainingSpeakers": list(SPEAKERS),
        "style": style_entry(style),
        "speakers": [voice.manifest_entry(gains.get(voice.id, 1)) for voice in VOICES],
    }
    path.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def export_voice(work: Path = HERE / "work", folder: Path = MODEL) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    model, statistics, style = load_model(work / "acoustic.pt")
    training = [one for one in load(work) if one.speaker == 0 and not one.held_out]
    encoder = EncoderGraph(model.encoder, usual_durations(training))
    some = training[::FINE_STEP]
    fine = fine_filter(some, predict(some, path=work / "acoustic.pt"))
    export_nets(encoder, FrameGraph(model.frame_net, statistics, fine), folder)
    decoder.export_decoder(folder / "decoder.onnx", work / "decoder.pt")
    write_manifest(statistics, style, work, folder)
    size = sum(path.stat().st_size for path in folder.glob("*.onnx"))
    print(f"{folder.name}: {size / 1e6:.2f} MB")


if __name__ == "__main__":
    export_voice(*map(Path, sys.argv[1:]))
