#!/usr/bin/python3
"""Trains the envelopes' flow on the person: `flow_training.py NAME STEPS`; begins where NAME's last checkpoint is."""

import os

os.environ["OMP_NUM_THREADS"] = os.environ.get("THREADS", "1")

import random
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from acoustic import averaged, keep_freed_memory, set_rate
from batches import Batch, collate, length_groups, measure, vary
from dataset import Example, FRAME_ROWS, load, set_styles, style_statistics, usual_durations
from flow import COLOURS, EnvelopeFlow
from model import BANDS, PITCH_VALUES
from phonemes import phone_set
from recordings import WORK, tuning

SEED = 1
RATE = 1e-3
WARM_UP = 200
AVERAGE = 0.999
DRAWS = 2
REPORT_STEPS = 100
LONGEST_FRAMES = 1100


def colour_basis(examples: list[Example], mean, deviation) -> tuple[np.ndarray, np.ndarray]:
    """How recordings differ in the mean of their loud rows: directions [COLOURS, 80] that give values of deviation 1."""
    means = np.array([loud_mean(one, mean, deviation) for one in examples])
    centre = means.mean(0)
    _, sizes, directions = np.linalg.svd(means - centre, full_matrices=False)
    return centre, (directions[:COLOURS] / (sizes[:COLOURS, None] / np.sqrt(len(means)))).astype(np.float32)


def loud_mean(example: Example, mean, deviation):
    bands = (example.rows[:, PITCH_VALUES:] - mean[PITCH_VALUES:]) / deviation[PITCH_VALUES:]
    level = bands.mean(1)
    return bands[level > np.median(level)].mean(0)


class Data:
    def __init__(self, work: Path) -> None:
        kept = set(tuning(work))
        examples = [one for one in load(work) if one.speaker == 0]
        self.tuning = sorted((one for one in examples if one.name in kept), key=lambda one: one.name)
        unseen_texts = {one.text for one in self.tuning}
        self.training = [
            one for one in examples if not one.held_out and one.text not in unseen_texts and one.durations.sum() < LONGEST_FRAMES
        ]
        usual = usual_durations(self.training)
        terminals = style_statistics(self.training, usual)
        set_styles(examples, terminals, usual)
        self.statistics = measure(self.training, terminals, phone_set(work))
        self.colour_centre, self.colours = colour_basis(self.training, self.statistics.mean, self.statistics.deviation)

    def colour(self, example: Example) -> np.ndarray:
        value = loud_mean(example, self.statistics.mean, self.statistics.deviation) - self.colour_centre
        return np.clip(self.colours @ value, -3, 3).astype(np.float32)

    def batches(self, rng: random.Random):
        while True:
            for group in length_groups(self.training, rng):
                colour = np.stack([self.colour(one) for one in group])
                yield collate([vary(one, self.statistics, rng) for one in group], self.statistics), torch.from_numpy(colour)


def condition_of(model: EnvelopeFlow, batch: Batch, colour: Tensor):
    pitch = batch.rows[:, :, :PITCH_VALUES].reshape(len(batch.rows), -1, FRAME_ROWS * PITCH_VALUES)
    return model.trunk(
        batch.ids, batch.place, batch.style, batch.phone_mask, batch.index, batch.position, pitch, colour, batch.frame_mask
    )


def frames_of(batch: Batch) -> Tensor:
    return batch.rows[:, :, PITCH_VALUES:].reshape(len(batch.rows), -1, FRAME_ROWS * BANDS)


def losses(model: EnvelopeFlow, batch: Batch, colour: Tensor, draws: int = DRAWS) -> tuple[Tensor, Tensor]:
    condition, mean, _, _ = condition_of(model, batch, colour)
    target, mask = frames_of(batch), batch.frame_mask
    count = mask.sum() * target.shape[2]
    error = ((mean - target).abs() * mask).sum() / count
    target, mask, condition = (torch.cat([value] * draws) for value in (target, mask, condition))
    noise = torch.randn_like(target)
    times = (torch.arange(len(target)) + torch.rand(len(target))) / len(target)
    times = times[torch.randperm(len(target))]
    place = times.reshape(-1, 1, 1)
    velocity = model.velocity((1 - place) * noise + place * target, times, condition, mask)
    flow = ((velocity - (target - noise)) ** 2 * mask).sum() / (count * draws)
    return flow, error


def save(path: Path, **values) -> None:
    torch.save(values, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


def train(name: str, steps: int, work: Path = WORK) -> None:
    keep_freed_memory()
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    torch.manual_seed(SEED)
    data = Data(work)
    model = EnvelopeFlow()
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.98), weight_decay=0.01)
    average = {key: value.detach().clone() for key, value in model.state_dict().items()}
    path, first = work / f"flow-{name}.pt", 1
    if path.exists():
        saved = torch.load(path, weights_only=False)
        model.load_state_dict(saved["current"])
        optimiser.load_state_dict(saved["optimiser"])
        average, first = saved["model"], saved["step"] + 1
    random_of_run = random.Random(SEED + first)
    torch.manual_seed(SEED + first)
    batches = data.batches(random_of_run)
    sizes = [sum(p.numel() for p in part.parameters()) / 1e6 for part in (model.trunk.encoder, model.trunk, model.velocity)]
    print(f"{len(data.training)} examples, {len(data.tuning)} to choose by; encoder, trunk, velocity {sizes} M", flush=True)
    unseen = [
        (collate(group, data.statistics), torch.from_numpy(np.stack([data.colour(one) for one in group])))
        for group in (data.tuning[at : at + 12] for at in range(0, len(data.tuning), 12))
    ]
    recent, started = [], time.process_time()
    for step in range(first, steps + 1):
        progress = step / steps
        rate = RATE * min(1, step / WARM_UP) * (1 if progress < 0.5 else 0.51 + 0.49 * np.cos(np.pi * (progress - 0.5) / 0.5))
        set_rate(optimiser, rate)
        batch, colour = next(batches)
        if random_of_run.random() < 0.2:
            colour = torch.zeros_like(colour)
        with torch.autocast("cpu", torch.bfloat16):
            flow, error = losses(model, batch, colour)
        optimiser.zero_grad()
        (flow + 0.5 * error).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        averaged(average, model, min(AVERAGE, step / (step + 10)))
        recent.append([flow.item(), error.item()])
        if step % REPORT_STEPS == 0 or step == steps:
            current = {key: value.clone() for key, value in model.state_dict().items()}
            model.load_state_dict(average)
            model.eval()
            with torch.no_grad(), torch.random.fork_rng(), torch.autocast("cpu", torch.bfloat16):
                torch.manual_seed(SEED)
                kept = np.mean([[value.item() for value in losses(model, *one, 4)] for one in unseen], 0)
            model.load_state_dict(current)
            model.train()
            means = np.mean(recent, 0)
            print(f"{step}, {time.process_time() - started:.0f} s of CPU: {means.round(4)}; unseen {kept.round(4)}", flush=True)
            recent = []
            save(
                path, model=average, current=model.state_dict(), optimiser=optimiser.state_dict(), step=step,
                statistics=data.statistics.__dict__, colour_centre=data.colour_centre, colours=data.colours,
            )  # fmt: skip


if __name__ == "__main__":
    train(sys.argv[1], int(sys.argv[2]))
