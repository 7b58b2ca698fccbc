"""Speaks without the service: the nets and the decoder in torch, on phones that the teacher's front end made.

For judging the nets apart from the service's text front end, and for choosing voices.
"""

from pathlib import Path

import numpy as np
import torch

from decoder import Decoder, decode
from export import EncoderGraph, FrameGraph
from features import SPEAKERS, Floats, frame_positions, make_ids, place_in_clause, read_utterances
from train import load_nets
from voices import Voice

SHORTEST_FRAMES = 1


class Speaker:
    def __init__(self, work: Path) -> None:
        encoder, frame_net, statistics = load_nets(work / "nets.pt")
        self.encoder = EncoderGraph(encoder).eval()
        self.frames = FrameGraph(frame_net, statistics).eval()
        self.log_mean = np.array([mean for mean, _ in statistics.pitch])
        self.decoder = Decoder(np.loadtxt(work / f"train-{SPEAKERS[0]}.bands")).eval()
        self.utterances = read_utterances(work / f"eval-{SPEAKERS[0]}")

    def say(self, number: int, voice: Voice) -> Floats:
        """Samples of one evaluation sentence."""
        names, ids = make_ids(self.utterances[number][1])
        mix = torch.tensor([voice.mix])
        with torch.no_grad():
            hidden, duration = self.encoder(torch.from_numpy(ids), torch.from_numpy(place_in_clause(names)), mix)
            frames = np.maximum(SHORTEST_FRAMES, np.round(duration.numpy() / voice.rate)).astype(np.int64)
            index, position = frame_positions(frames)
            f0, *rest = self.frames(hidden, torch.from_numpy(index), torch.from_numpy(position))
        mean = float(np.array(voice.mix) @ self.log_mean)
        shaped = torch.exp(mean + voice.liveliness * (torch.log(f0) - mean)) * voice.pitch
        return decode(self.decoder, (shaped, *(part.contiguous() for part in rest)), voice.warp)
