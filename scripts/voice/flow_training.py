#!/usr/bin/python3
"""Trains the model of several people: `flow_training.py NAME STEPS ID...`. It begins where NAME's last checkpoint is.

The rate falls over the second half of STEPS. A run that was stopped goes on with the same command; each hundred steps are kept.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import random
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from acoustic import averaged, keep_freed_memory, set_rate
from flow import UNCONDITIONAL_SHARE, PeopleModel, Velocity
from flow_data import Data, FlowBatch
from recordings import WORK

SEED = 1
RATE = 1e-3
WARM_UP = 200
AVERAGE = 0.999
REPORT_STEPS = 100
UNSEEN_BATCH = 12
WEIGHTS = (1, 0.2, 0, 0.3, 0.1, 0.1)  # of what `losses` returns


def flow_loss(flow: Velocity, target: Tensor, condition: Tensor, person: Tensor, mask: Tensor) -> Tensor:
    """How far the net's velocity is from the straight way of a draw."""
    noise = torch.randn_like(target)
    times = ((torch.arange(len(target)) + torch.rand(len(target))) / len(target))[torch.randperm(len(target))]
    place = times.reshape(-1, 1, 1)
    velocity = flow((1 - place) * noise + place * target, times, condition, person, mask)
    return ((velocity - (target - noise)) ** 2 * mask).mean(2).sum() / mask.sum()


def losses(model: PeopleModel, batch: FlowBatch) -> tuple[Tensor, ...]:
    """Envelopes' flow, their likelihood and mean error, F0's flow and likelihood, likelihood of durations."""
    said = batch.said
    person = model.person(said.person)
    hidden, log_durations, log_spreads = model.encode(said)
    error = (batch.log_durations - log_durations) * torch.exp(-log_spreads)
    phones = said.phone_mask[:, :, 0]
    duration = ((0.5 * error * error + log_spreads) * phones).sum() / phones.sum()

    condition, usual = model.pitch_condition(said, hidden)
    pitch_likelihood = (usual.surprise(batch.pitch).mean(2, keepdim=True) * said.mask).sum() / said.mask.sum()
    pitch = flow_loss(model.pitch, usual.relative(batch.pitch).detach(), condition, person, said.mask)

    condition, usual = model.envelope_condition(said, hidden, batch.pitch)
    weight = said.mask * batch.known
    likelihood = (usual.surprise(batch.frames) * weight).sum() / weight.sum()
    mean_error = ((usual.mean - batch.frames).abs() * weight).sum().detach() / weight.sum()
    if model.training:
        condition = condition * (torch.rand(len(condition), 1, 1) > UNCONDITIONAL_SHARE)
    # What a recording lacks is what is usual: cepstra need all bands.
    target = model.cepstra(torch.where(batch.known > 0, batch.frames, usual.mean.detach()))
    envelope = flow_loss(model.envelope, target, condition, person, said.mask)
    return envelope, likelihood, mean_error, pitch, pitch_likelihood, duration


def save(path: Path, **values) -> None:
    """Whole or not at all."""
    torch.save(values, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


def train(name: str, steps: int, ids: list[str], work: Path = WORK) -> None:
    keep_freed_memory()
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    data = Data(ids, work)
    model = PeopleModel()
    model.cepstra.deviation.copy_(data.cepstra)
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.98), weight_decay=0.01)
    average = {key: value.detach().clone() for key, value in model.state_dict().items()}
    path, first = work / f"flow-{name}.pt", 1
    if path.exists():
        saved = torch.load(path, weights_only=False)
        model.load_state_dict(saved["current"])
        optimiser.load_state_dict(saved["optimiser"])
        average, first = saved["model"], saved["step"] + 1
        known = saved["symbols"]
        assert all(data.symbols.get(symbol) == place for symbol, place in known.items()), "the checkpoint has other symbols"
    rng = random.Random(SEED + first)
    torch.manual_seed(SEED + first)
    batches = data.batches(rng)
    for person in data.people:
        minutes = sum(int(one.durations.sum()) for one in person.training) / 6000
        print(f"{person.id}: {len(person.training)} examples, {minutes:.1f} minutes, {len(person.tuning)} to choose by", flush=True)
    print(f"{sum(value.numel() for value in model.parameters()) / 1e6:.2f} M parameters, {len(data.symbols)} symbols", flush=True)
    unseen = []
    for person in data.people:
        ordered = sorted(person.tuning, key=lambda one: len(one.rows))[: 2 * UNSEEN_BATCH]
        unseen += [data.collate(ordered[at : at + UNSEEN_BATCH]) for at in range(0, len(ordered), UNSEEN_BATCH)]
    recent, started = [], time.process_time()
    for step in range(first, steps + 1):
        progress = step / steps
        share = 1 if progress < 0.5 else 0.51 + 0.49 * np.cos(np.pi * (progress - 0.5) / 0.5)
        set_rate(optimiser, RATE * min(1, step / WARM_UP) * share)
        batch = next(batches)
        with torch.autocast("cpu", torch.bfloat16):
            parts = losses(model, batch)
        optimiser.zero_grad()
        sum(weight * part for weight, part in zip(WEIGHTS, parts)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        averaged(average, model, min(AVERAGE, step / (step + 10)))
        recent.append([value.item() for value in parts])
        if step % REPORT_STEPS == 0 or step == steps:
            current = {key: value.clone() for key, value in model.state_dict().items()}
            model.load_state_dict(average)
            model.eval()
            with torch.no_grad(), torch.random.fork_rng(), torch.autocast("cpu", torch.bfloat16):
                torch.manual_seed(SEED)
                kept = np.mean([[value.item() for value in losses(model, one)] for one in unseen], 0)
            model.load_state_dict(current)
            model.train()
            means = np.mean(recent, 0).round(3)
            print(f"{step}, {time.process_time() - started:.0f} s of CPU: {means}; unseen {kept.round(3)}", flush=True)
            recent = []
            save(
                path, model=average, current=current, optimiser=optimiser.state_dict(), step=step, symbols=data.symbols,
                mean=data.mean, deviation=data.deviation, colours=data.colours, ids=ids,
                styles={person.id: person.styles for person in data.people},
            )  # fmt: skip


if __name__ == "__main__":
    train(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
