"""Trains the nets on the teacher's parameters: `train.py FOLDER [STEPS]`. One thread, fixed seeds, a schedule by steps."""

import ctypes
import os
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # the backward pass would start a pool of its own, and spin

import numpy as np
import torch
from torch import Tensor, nn

from features import BANDS, CEPSTRA, FRAME_VALUES, SPEAKERS, SUB_FRAME_VALUES, SUB_FRAMES, Example, frame_positions, load_examples
from model import Encoder, FrameNet

STEPS = 6000
BATCH_FRAMES = 4200  # examples of like length are put together up to this many frames
PEAK_RATE = 1.5e-3
WARM_UP = 200
CONSTANT_UNTIL = 0.35  # then the rate falls along a cosine
AVERAGE = 0.998  # the weights that are kept are a moving average
VOICING = 1  # its place in a sub-frame's values
SEED = 1


@dataclass
class Statistics:
    """What the nets' standardised values mean, and each speaker's mean and spread of log-F0."""

    mean: np.ndarray
    deviation: np.ndarray
    pitch: list[tuple[float, float]]


@dataclass
class Batch:
    ids: Tensor
    place: Tensor
    speaker: Tensor
    log_durations: Tensor
    phone_mask: Tensor
    index: Tensor
    position: Tensor
    frames: Tensor
    frame_mask: Tensor


def measure(examples: list[Example]) -> Statistics:
    rows = np.concatenate([example.frames.reshape(-1, SUB_FRAME_VALUES) for example in examples[::5]])
    mean, deviation = rows.mean(0), rows.std(0) + 1e-3
    mean[VOICING], deviation[VOICING] = 0, 1  # a probability, trained as one
    pitch = []
    for speaker in range(len(SPEAKERS)):
        own = [example.frames.reshape(-1, SUB_FRAME_VALUES) for example in examples if example.speaker == speaker]
        values = np.concatenate(own)
        voiced = values[values[:, VOICING] > 0.5, 0]
        pitch.append((float(voiced.mean()), float(voiced.std())))
    return Statistics(np.tile(mean, SUB_FRAMES).astype(np.float32), np.tile(deviation, SUB_FRAMES).astype(np.float32), pitch)


def collate(examples: list[Example], statistics: Statistics) -> Batch:
    count = len(examples)
    phones = max(example.ids.shape[1] for example in examples)
    frames = max(len(example.frames) for example in examples)
    ids = np.zeros((count, 4, phones), np.int64)
    place = np.zeros((count, 2, phones), np.float32)
    log_durations = np.zeros((count, phones), np.float32)
    phone_mask = np.zeros((count, 1, phones), np.float32)
    index = np.zeros((count, 1, frames), np.int64)
    position = np.zeros((count, 4, frames), np.float32)
    values = np.zeros((count, FRAME_VALUES, frames), np.float32)
    frame_mask = np.zeros((count, 1, frames), np.float32)
    for row, example in enumerate(examples):
        length, duration = example.ids.shape[1], len(example.frames)
        ids[row, :, :length] = example.ids
        place[row, :, :length] = example.place
        log_durations[row, :length] = np.log(example.durations)
        phone_mask[row, :, :length] = 1
        index[row, 0, :duration], position[row, :, :duration] = frame_positions(example.durations)
        values[row, :, :duration] = ((example.frames - statistics.mean) / statistics.deviation).T
        frame_mask[row, :, :duration] = 1
    speaker = np.eye(len(SPEAKERS), dtype=np.float32)[[example.speaker for example in examples]]
    arrays = (ids, place, speaker, log_durations, phone_mask, index, position, values, frame_mask)
    return Batch(*(torch.from_numpy(array) for array in arrays))


def shuffled_batches(examples: list[Example], rng: random.Random) -> list[list[Example]]:
    """Examples of nearly equal length together (padding costs as much as speech), in random order."""
    keyed = sorted((len(example.frames) + rng.random() * 40, place) for place, example in enumerate(examples))
    batches: list[list[Example]] = [[]]
    for _, place in keyed:
        if (len(batches[-1]) + 1) * len(examples[place].frames) > BATCH_FRAMES and batches[-1]:
            batches.append([])
        batches[-1].append(examples[place])
    rng.shuffle(batches)
    return batches


def loss_weights() -> Tensor:
    """F0 and the low cepstra, which carry tune and vowels, count more; voicing has a loss of its own."""
    weights = torch.ones(SUB_FRAME_VALUES)
    weights[0] = 2
    weights[VOICING] = 0
    weights[2:10] = 1.5
    return weights.repeat(SUB_FRAMES).view(1, FRAME_VALUES, 1)


class Trainer:
    def __init__(self, statistics: Statistics) -> None:
        self.statistics = statistics
        self.encoder = Encoder()
        self.frame_net = FrameNet()
        self.nets = nn.ModuleList([self.encoder, self.frame_net])
        self.average = {name: value.detach().clone() for name, value in self.nets.state_dict().items()}
        self.optimiser = torch.optim.AdamW(self.nets.parameters(), lr=PEAK_RATE, betas=(0.9, 0.98), weight_decay=1e-4)
        self.weights = loss_weights()

    def losses(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Parameter, voicing and duration loss, and the frames predicted."""
        hidden, log_durations = self.encoder(batch.ids, batch.place, batch.speaker, batch.phone_mask)
        spread = torch.gather(hidden, 2, batch.index.expand(-1, hidden.shape[1], -1))
        predicted = self.frame_net(spread, batch.position, batch.frame_mask)
        frames, phones = batch.frame_mask.sum(), batch.phone_mask.sum()
        difference = (predicted - batch.frames).abs() * self.weights * batch.frame_mask
        parameters = difference.sum() / frames / (SUB_FRAMES * (1 + CEPSTRA + BANDS))
        voicing_rows = [VOICING + SUB_FRAME_VALUES * sub for sub in range(SUB_FRAMES)]
        voicing = nn.functional.binary_cross_entropy_with_logits(
            predicted[:, voicing_rows], batch.frames[:, voicing_rows], reduction="none"
        )
        voicing_loss = (voicing * batch.frame_mask).sum() / frames / SUB_FRAMES
        duration_loss = (((log_durations - batch.log_durations) ** 2) * batch.phone_mask[:, 0]).sum() / phones
        return parameters, voicing_loss, duration_loss, predicted

    def step(self, batch: Batch, number: int, total: int) -> tuple[float, float, float]:
        progress = max(0.0, number / total - CONSTANT_UNTIL) / (1 - CONSTANT_UNTIL)
        rate = PEAK_RATE * min(1.0, (number + 1) / WARM_UP) * (0.02 + 0.98 * 0.5 * (1 + np.cos(np.pi * progress)))
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        parameters, voicing, duration, _ = self.losses(batch)
        self.optimiser.zero_grad()
        (parameters + 0.3 * voicing + 0.3 * duration).backward()
        nn.utils.clip_grad_norm_(self.nets.parameters(), 1.0)
        self.optimiser.step()
        keep = min(AVERAGE, (number + 1) / (number + 10))
        with torch.no_grad():
            for name, value in self.nets.state_dict().items():
                self.average[name].lerp_(value, 1 - keep)
        return parameters.item(), voicing.item(), duration.item()

    def save(self, path: Path) -> None:
        torch.save({"nets": self.average, "statistics": self.statistics.__dict__}, path)


def load_nets(path: Path) -> tuple[Encoder, FrameNet, Statistics]:
    saved = torch.load(path)
    nets = nn.ModuleList([Encoder(), FrameNet()])
    nets.load_state_dict(saved["nets"])
    nets.eval()
    return nets[0], nets[1], Statistics(**saved["statistics"])


def report(trainer: Trainer, examples: list[Example]) -> None:
    """How far the averaged nets are from the teacher on sentences they have not seen."""
    trainer.nets.load_state_dict(trainer.average)
    with torch.no_grad():
        for speaker, name in enumerate(SPEAKERS):
            own = [example for example in examples if example.speaker == speaker]
            parameters, voicing, duration, _ = trainer.losses(collate(own, trainer.statistics))
            print(f"{name}: unseen parameters {parameters:.4f} voicing {voicing:.4f} duration {duration:.4f}")


def keep_freed_memory() -> None:
    """Tells malloc to keep what is freed: else two thirds of the time go into fresh pages for each step's tensors."""
    trim_threshold, mmap_max = -1, -4
    library = ctypes.CDLL(None)
    library.mallopt(mmap_max, 0)
    library.mallopt(trim_threshold, 2**31 - 1)


def train(folder: Path, steps: int = STEPS) -> None:
    keep_freed_memory()
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    rng = random.Random(SEED)
    examples = load_examples(folder, "train")
    minutes = sum(len(example.frames) for example in examples) / 6000
    trainer = Trainer(measure(examples))
    parameters = sum(value.numel() for value in trainer.nets.parameters())
    print(f"{len(examples)} utterances, {minutes:.0f} minutes, {parameters / 1e6:.2f} M parameters", flush=True)
    started, recent = time.monotonic(), []
    batches: list[list[Example]] = []
    for number in range(steps):
        batches = batches or shuffled_batches(examples, rng)
        recent.append(trainer.step(collate(batches.pop(), trainer.statistics), number, steps))
        if (number + 1) % 100 == 0:
            means = " ".join(f"{name} {value:.4f}" for name, value in zip(("parameters", "voicing", "duration"), np.mean(recent, 0)))
            print(f"step {number + 1} of {steps}, {time.monotonic() - started:.0f} s: {means}", flush=True)
            recent = []
        if (number + 1) % 1000 == 0:
            trainer.save(folder / "nets.pt")
    trainer.save(folder / "nets.pt")
    report(trainer, load_examples(folder, "eval"))


if __name__ == "__main__":
    train(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else STEPS)
