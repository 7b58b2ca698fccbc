"""Writes the voice into a folder: three ONNX graphs and the manifest that the service reads."""

import hashlib
import json
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from decoder import HOP, SAMPLE_RATE, export_decoder
from features import CEPSTRA, FRAME_SECONDS, SPEAKERS, SUB_FRAME_VALUES, SUB_FRAMES
from model import FRAME_DILATIONS, HIDDEN, KERNEL, ENCODER_DILATIONS, PLACE_FEATURES, POSITION_FEATURES, Encoder, FrameNet
from phones import PHONES
from train import VOICING, Statistics, load_nets
from voices import VOICES

NAME = "syrinx-en"
OPERATORS = 15
FRAME_MARGIN = 22  # what the engine gives at either side: the receptive field is 20
VOICING_SLOPE = 4  # sharpens the net's voicing, which is unsure only at borders


class EncoderGraph(nn.Module):
    """ids [4, L], place [2, L], speaker [1, 3] -> hidden [1, H, L], duration [L] in frames."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, ids: Tensor, place: Tensor, speaker: Tensor) -> tuple[Tensor, Tensor]:
        hidden, log_duration = self.encoder(ids.unsqueeze(0), place.unsqueeze(0), speaker, None)
        return hidden, torch.exp(log_duration[0])


class FrameGraph(nn.Module):
    """hidden [1, H, L], index [T], position [4, T] -> the decoder's rows, two for each frame."""

    def __init__(self, frame_net: FrameNet, statistics: Statistics) -> None:
        super().__init__()
        self.frame_net = frame_net
        self.register_buffer("mean", torch.from_numpy(statistics.mean))
        self.register_buffer("deviation", torch.from_numpy(statistics.deviation))

    def forward(self, hidden: Tensor, index: Tensor, position: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        spread = torch.index_select(hidden, 2, index)
        frames = self.frame_net(spread, position.unsqueeze(0), None)[0].transpose(0, 1)
        rows = (frames * self.deviation + self.mean).reshape(-1, SUB_FRAME_VALUES)
        return (
            torch.exp(rows[:, 0]),
            torch.sigmoid(VOICING_SLOPE * rows[:, VOICING]),
            rows[:, 2 : 2 + CEPSTRA],
            torch.clamp(rows[:, 2 + CEPSTRA :], 0, 1),
        )


def export_nets(encoder: Encoder, frame_net: FrameNet, statistics: Statistics, folder: Path) -> None:
    phones, frames = 20, 50
    torch.onnx.export(
        EncoderGraph(encoder).eval(),
        (torch.zeros(4, phones, dtype=torch.int64), torch.zeros(PLACE_FEATURES, phones), torch.tensor([[1.0, 0.0, 0.0]])),
        str(folder / "encoder.onnx"),
        input_names=["ids", "place", "speaker"],
        output_names=["hidden", "duration"],
        opset_version=OPERATORS,
        dynamic_axes={"ids": {1: "phones"}, "place": {1: "phones"}, "hidden": {2: "phones"}, "duration": {0: "phones"}},
    )
    rows = {name: {0: "rows"} for name in ("f0", "voicing", "cepstra", "aperiodicity")}
    torch.onnx.export(
        FrameGraph(frame_net, statistics).eval(),
        (torch.zeros(1, HIDDEN, phones), torch.zeros(frames, dtype=torch.int64), torch.zeros(POSITION_FEATURES, frames)),
        str(folder / "frames.onnx"),
        input_names=["hidden", "index", "position"],
        output_names=list(rows),
        opset_version=OPERATORS,
        dynamic_axes={"hidden": {2: "phones"}, "index": {0: "frames"}, "position": {1: "frames"}, **rows},
    )


def file_entry(path: Path) -> dict[str, object]:
    content = path.read_bytes()
    return {"path": path.name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def write_manifest(statistics: Statistics, folder: Path) -> None:
    reach = KERNEL // 2
    assert reach * sum(FRAME_DILATIONS) <= FRAME_MARGIN
    manifest = {
        "format": "syrinx-1",
        "name": NAME,
        "language": "en",
        "sampleRateHz": SAMPLE_RATE,
        "licence": "Apache-2.0; trained on the output of flite's CMU voices, see NOTICE",
        "files": {part: file_entry(folder / f"{part}.onnx") for part in ("encoder", "frames", "decoder")},
        "phones": PHONES,
        "frame": {"durationMs": round(FRAME_SECONDS * 1000), "subFrames": SUB_FRAMES, "hopSamples": HOP},
        "margins": {"phones": reach * sum(ENCODER_DILATIONS), "frames": FRAME_MARGIN},
        "hiddenSize": HIDDEN,
        # Of each speaker of the mix: what `liveliness` and `temperature` scale excursions about.
        "trainingF0": {
            "speakers": list(SPEAKERS),
            "logMean": [round(mean, 4) for mean, _ in statistics.pitch],
            "logDeviation": [round(deviation, 4) for _, deviation in statistics.pitch],
        },
        "speakers": [voice.manifest_entry() for voice in VOICES],
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def export_voice(work: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    encoder, frame_net, statistics = load_nets(work / "nets.pt")
    export_nets(encoder, frame_net, statistics, folder)
    export_decoder(np.loadtxt(work / f"train-{SPEAKERS[0]}.bands"), folder / "decoder.onnx")
    write_manifest(statistics, folder)
    size = sum(path.stat().st_size for path in folder.glob("*.onnx"))
    print(f"{folder}: {size / 1e6:.2f} MB")
