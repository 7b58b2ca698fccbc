#!/usr/bin/python3
"""Trains the acoustic model: `acoustic.py [first] [second] [third] [fourth] [fifth]`. One thread, fixed seeds, schedules by steps.

First stage: least absolute error, which gives durations, a rough melody and blurred envelopes. It ends early: more of it
overfits F0 and durations, for which the recordings are few. Second stage: discriminators, which give F0 and envelopes the
movement of the person's. The encoder is left as it is then, so durations cannot overfit. Third stage: the same with a falling
rate; F0 must also spread as the person's does, and consonants must be clear. Fourth stage: the same again with fresh
discriminators. Fifth stage: the same with a net that names the phones of what it hears (clarity.py).
"""

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
from numpy.typing import NDArray
from torch import Tensor, nn

from batches import LOG_F0, VOICING, Batch, Statistics, collate, measure, training_batches
from clarity import train_judge, unclarity
from dataset import SPEAKERS, Example, load, statistics
from discriminators import Judges, deception_losses, detection_loss, texture
from model import NOISES, PITCH_VALUES, AcousticModel, spread_over_frames
from phonemes import phone_set
from recordings import WORK

SEED = 1
SAVE_STEPS = 100
LONGEST_FRAMES = 1100

FIRST_STEPS = 800
FIRST_RATE = 1.5e-3
FIRST_WARM_UP = 200
FIRST_CONSTANT_UNTIL = 0.2  # then the rate falls along a cosine
FIRST_AVERAGE = 0.998  # the weights that are kept are a moving average

JUDGED_RATE, JUDGES_RATE = 2.5e-4, 4e-4
JUDGED_AVERAGE = 0.995
JUDGED_ROWS = 192  # of a stretch
JUDGED_STRETCHES = 10
JUDGES_WARM_UP = 200
PASSING_WEIGHT, LIKENESS_WEIGHT = 0.08, 0.04
VIEW_WEIGHTS = (1.0, 1.0, 3.0)  # rows, picture, tune: what the least error says about F0 is the flattest
UNVOICED_WEIGHT = 0.15  # of F0's error, where F0 is a guess


@dataclass(frozen=True)
class Stage:
    """A stage with discriminators."""

    name: str
    before: str  # the stage that it continues
    steps: int
    constant_until: float  # then the rate falls along a cosine
    spread_weight: float = 0  # of the spread of each utterance's F0
    consonant_weight: float = 0  # how much more the envelopes of consonants count
    clarity_weight: float = 0  # of being understood phone by phone


SECOND = Stage("second", "first", 1600, 1)
THIRD = Stage("third", "second", 700, 0.3, spread_weight=0.3, consonant_weight=1)
FOURTH = Stage("fourth", "third", 500, 0.4, spread_weight=0.3, consonant_weight=1)
FIFTH = Stage("fifth", "fourth", 500, 0.4, spread_weight=0.3, consonant_weight=1, clarity_weight=0.5)


@dataclass
class Predicted:
    log_durations: Tensor
    log_spreads: Tensor
    trunk: Tensor
    pitch: Tensor  # [B, 2T, 2]
    bands: Tensor  # [B, 2T, 80]


def predict_batch(model: AcousticModel, batch: Batch, encoder_learns: bool = True) -> Predicted:
    with torch.set_grad_enabled(torch.is_grad_enabled() and encoder_learns):
        hidden, log_durations, log_spreads = model.encoder(batch.ids, batch.place, batch.style, batch.phone_mask)
    noise = torch.randn(*batch.index.shape, NOISES)
    net, mask = model.frame_net, batch.frame_mask
    trunk = net.trunk(spread_over_frames(hidden, batch.index), batch.position, noise, mask)
    return Predicted(log_durations, log_spreads, trunk, net.pitch_rows(trunk, mask), net.envelope_rows(trunk, batch.speaker, mask))


@dataclass
class Losses:
    envelope: Tensor
    f0: Tensor
    voicing: Tensor
    duration: Tensor

    def values(self) -> list[float]:
        return [self.envelope.item(), self.f0.item(), self.voicing.item(), self.duration.item()]


def losses_of(predicted: Predicted, batch: Batch, consonant_weight: float = 0) -> Losses:
    """Everybody's envelopes count; F0, voicing and durations only if they are the person's."""
    mask, own = batch.row_mask, batch.row_mask * batch.own.unsqueeze(1)
    target = batch.rows
    envelope_weight = mask * (1 + consonant_weight * batch.consonants)
    errors = (predicted.bands - target[:, :, PITCH_VALUES:]).abs().mean(2)
    envelope = (errors * envelope_weight).sum() / envelope_weight.sum()
    voiced = target[:, :, VOICING]
    weight = own * (UNVOICED_WEIGHT + (1 - UNVOICED_WEIGHT) * voiced)
    f0 = ((predicted.pitch[:, :, LOG_F0] - target[:, :, LOG_F0]).abs() * weight).sum() / weight.sum().clamp(min=1)
    surprise = nn.functional.binary_cross_entropy_with_logits(predicted.pitch[:, :, VOICING], voiced, reduction="none")
    voicing = (surprise * own).sum() / own.sum().clamp(min=1)
    # The likelihood of a normal distribution, so that the net also learns how sure it is of each duration.
    error = (batch.log_durations - predicted.log_durations) * torch.exp(-predicted.log_spreads)
    phones = batch.phone_mask[:, :, 0] * batch.own.unsqueeze(1)
    duration = ((0.5 * error * error + predicted.log_spreads) * phones).sum() / phones.sum().clamp(min=1)
    return Losses(envelope, f0, voicing, duration)


def spread_loss(predicted: Predicted, batch: Batch) -> Tensor:
    """How much the spread of F0 in the person's utterances is missed, in natural logarithms."""
    voiced = batch.rows[:, :, VOICING] * batch.row_mask
    count = voiced.sum(1, keepdim=True).clamp(min=1)

    def log_spread(log_f0: Tensor) -> Tensor:
        centred = log_f0 - (log_f0 * voiced).sum(1, keepdim=True) / count
        return 0.5 * torch.log((centred**2 * voiced).sum(1) / count[:, 0] + 1e-3)

    missed = (log_spread(predicted.pitch[:, :, LOG_F0]) - log_spread(batch.rows[:, :, LOG_F0])).abs()
    return (missed * batch.own).sum() / batch.own.sum().clamp(min=1)


def averaged(average: dict[str, Tensor], model: nn.Module, keep: float) -> None:
    with torch.no_grad():
        for name, value in model.state_dict().items():
            average[name].lerp_(value, 1 - keep)


def set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    for group in optimiser.param_groups:
        group["lr"] = rate


def falling(progress: float, constant_until: float) -> float:
    """A factor of the rate: 1, then down to 0.02 along a cosine."""
    if progress <= constant_until:
        return 1
    return 0.51 + 0.49 * float(np.cos(np.pi * (progress - constant_until) / (1 - constant_until)))


class Trainer:
    def __init__(self, work: Path) -> None:
        examples = load(work)
        self.work = work
        self.training = [one for one in examples if not one.held_out and one.durations.sum() < LONGEST_FRAMES]
        self.unseen = [one for one in examples if one.held_out and one.speaker == 0]
        self.style = statistics(work)
        self.statistics = measure(self.training, self.style["terminals"], phone_set(work))
        self.model = AcousticModel()
        self.average = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
        self.batches = training_batches(self.training, self.statistics, random.Random(SEED))
        self.unseen_batches = [collate(self.unseen[at : at + 12], self.statistics) for at in range(0, len(self.unseen), 12)]
        self.started = time.monotonic()
        self.recent: list[list[float]] = []
        for number, name in enumerate(SPEAKERS):
            frames = sum(int(one.durations.sum()) for one in self.training if one.speaker == number)
            print(f"{name}: {frames / 6000:.1f} minutes")
        size = sum(value.numel() for value in self.model.parameters())
        print(f"{len(self.unseen)} held out, {size / 1e6:.2f} M parameters", flush=True)

    def resume(self, path: Path) -> None:
        self.average = torch.load(path, weights_only=False)["model"]
        self.model.load_state_dict(self.average)
        self.average = {name: value.clone() for name, value in self.average.items()}

    def save(self, name: str) -> None:
        saved = {"model": self.average, "statistics": self.statistics.__dict__, "style": self.style}
        torch.save(saved, self.work / "unfinished.pt")
        os.replace(self.work / "unfinished.pt", self.work / name)  # others may be reading it

    def report(self, stage: str, step: int) -> None:
        """The latest steps' mean losses, and those of the averaged weights on what they have not seen."""
        current = {name: value.clone() for name, value in self.model.state_dict().items()}
        self.model.load_state_dict(self.average)
        self.model.eval()
        with torch.no_grad(), torch.random.fork_rng():
            torch.manual_seed(SEED)
            unseen = np.mean([losses_of(predict_batch(self.model, batch), batch).values() for batch in self.unseen_batches], 0)
        self.model.load_state_dict(current)
        self.model.train()
        means = " ".join(f"{value:.3f}" for value in np.mean(self.recent, 0))
        kept = " ".join(f"{value:.3f}" for value in unseen)
        print(f"{stage} {step}, {time.monotonic() - self.started:.0f} s: {means}; held out {kept}", flush=True)
        self.recent = []

    def first_stage(self) -> None:
        """Reports envelope, F0, voicing and duration loss."""
        optimiser = torch.optim.AdamW(self.model.parameters(), lr=FIRST_RATE, betas=(0.9, 0.98), weight_decay=1e-3)
        for step in range(1, FIRST_STEPS + 1):
            warm = min(1.0, step / FIRST_WARM_UP)
            set_rate(optimiser, FIRST_RATE * warm * falling(step / FIRST_STEPS, FIRST_CONSTANT_UNTIL))
            batch = next(self.batches)
            with torch.autocast("cpu", torch.bfloat16):
                predicted = predict_batch(self.model, batch)
            losses = losses_of(predicted, batch)
            optimiser.zero_grad()
            (losses.envelope + 0.3 * losses.f0 + 0.2 * losses.voicing + 0.1 * losses.duration).backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            optimiser.step()
            averaged(self.average, self.model, min(FIRST_AVERAGE, step / (step + 10)))
            self.recent.append(losses.values())
            if step % SAVE_STEPS == 0 or step == FIRST_STEPS:
                self.report("first", step)
                self.save("acoustic.pt")
        self.save("acoustic-first.pt")

    def judged_stage(self, stage: Stage) -> None:
        """Reports the first stage's losses, then detection, passing and likeness."""
        judges = Judges()
        self.model.load_state_dict(self.average)
        net = self.model.frame_net
        optimiser = torch.optim.Adam(net.parameters(), lr=JUDGED_RATE, betas=(0.5, 0.99))
        judging = torch.optim.Adam(judges.parameters(), lr=JUDGES_RATE, betas=(0.5, 0.99))
        rng = np.random.RandomState(SEED)
        placed = ((batch, stretches(batch, rng)) for batch in self.batches)
        judged = ((batch, places) for batch, places in placed if places)
        phone_judge = train_judge(self.batches, self.unseen_batches) if stage.clarity_weight > 0 else None
        self.model.train()
        self.model.encoder.eval()
        for step in range(1, stage.steps + 1):
            share = falling(step / stage.steps, stage.constant_until)
            set_rate(optimiser, JUDGED_RATE * share)
            set_rate(judging, JUDGES_RATE * share)
            batch, places = next(judged)
            with torch.autocast("cpu", torch.bfloat16):
                predicted = predict_batch(self.model, batch, encoder_learns=False)
                revoiced = net.envelope_rows(predicted.trunk, other_speakers(batch, rng), batch.frame_mask)
            losses = losses_of(predicted, batch, stage.consonant_weight)
            real = cut(batch.rows, places)
            voiced = torch.sigmoid(predicted.pitch[:, :, VOICING:])
            pitch = torch.cat([predicted.pitch[:, :, :VOICING], voiced], 2)
            fake = cut(torch.cat([pitch, predicted.bands], 2), places)
            other = cut(torch.cat([pitch.detach(), revoiced], 2), places)

            detection = detection_loss(judges.texture, texture(real), texture(other.detach()))
            views = judges.of_person(real[:, :, VOICING])
            for judge, view in views:
                detection = detection + detection_loss(judge, view(real), view(fake.detach()))
            judging.zero_grad()
            detection.backward()
            judging.step()

            passing, likeness = deception_losses(judges.texture, None, texture(other))
            for (judge, view), weight in zip(views, VIEW_WEIGHTS):
                one_passing, one_likeness = deception_losses(judge, view(real), view(fake))
                passing, likeness = passing + weight * one_passing, likeness + weight * one_likeness
            judgement = min(1.0, step / JUDGES_WARM_UP) * (PASSING_WEIGHT * passing + LIKENESS_WEIGHT * likeness)
            optimiser.zero_grad()
            loss = losses.envelope + 0.1 * losses.f0 + 0.2 * losses.voicing + judgement
            if stage.spread_weight > 0:
                loss = loss + stage.spread_weight * spread_loss(predicted, batch)
            unclear = torch.zeros(())
            if phone_judge is not None:
                with torch.autocast("cpu", torch.bfloat16):
                    unclear = unclarity(phone_judge, predicted.bands, batch, stage.consonant_weight)
                    unclear = 0.5 * (unclear + unclarity(phone_judge, revoiced, batch, stage.consonant_weight))
                loss = loss + stage.clarity_weight * unclear
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimiser.step()
            averaged(self.average, self.model, JUDGED_AVERAGE)
            self.recent.append([*losses.values(), detection.item(), passing.item(), likeness.item(), unclear.item()])
            if step % SAVE_STEPS == 0 or step == stage.steps:
                self.report(stage.name, step)
                self.model.encoder.eval()
                self.save("acoustic.pt")
        self.save(f"acoustic-{stage.name}.pt")


def stretches(batch: Batch, rng: np.random.RandomState) -> list[tuple[int, int]]:
    """Example and first row of what the discriminators see: the person's, chosen at random."""
    lengths = batch.row_mask.sum(1).long().tolist()
    usable = [place for place, length in enumerate(lengths) if batch.own[place] > 0 and length >= JUDGED_ROWS]
    chosen = rng.permutation(usable)[:JUDGED_STRETCHES] if usable else []
    return [(int(place), int(rng.randint(lengths[place] - JUDGED_ROWS + 1))) for place in chosen]


def cut(rows: Tensor, places: list[tuple[int, int]]) -> Tensor:
    return torch.stack([rows[place, first : first + JUDGED_ROWS] for place, first in places])


def other_speakers(batch: Batch, rng: np.random.RandomState) -> Tensor:
    """For each example one of the speakers who are not the person, or a mixture of two of all."""
    count = len(batch.ids)
    weights = np.eye(len(SPEAKERS), dtype=np.float32)[1 + rng.randint(len(SPEAKERS) - 1, size=count)]
    second = np.eye(len(SPEAKERS), dtype=np.float32)[rng.randint(len(SPEAKERS), size=count)]
    share = np.where(rng.rand(count, 1) < 0.5, 0, 0.5 * rng.rand(count, 1)).astype(np.float32)
    return torch.from_numpy((1 - share) * weights + share * second)


def load_model(path: Path = WORK / "acoustic.pt") -> tuple[AcousticModel, Statistics, dict]:
    saved = torch.load(path, weights_only=False)
    model = AcousticModel()
    model.load_state_dict(saved["model"])
    return model.eval(), Statistics(**saved["statistics"]), saved["style"]


def predict(examples: list[Example], seed: int = SEED, path: Path = WORK / "acoustic.pt") -> list[NDArray[np.float32]]:
    """Bands [2T, 80] of each example, at its own durations and styles: what the decoder hears in service."""
    model, measured, _ = load_model(path)
    torch.manual_seed(seed)
    bands = []
    with torch.no_grad():
        for example in examples:
            standardised = predict_batch(model, collate([example], measured)).bands[0].numpy()
            bands.append(standardised * measured.deviation[PITCH_VALUES:] + measured.mean[PITCH_VALUES:])
    return bands


def keep_freed_memory() -> None:
    """Tells malloc to keep what is freed: else two thirds of the time go into fresh pages for each step's tensors."""
    trim_threshold, mmap_max = -1, -4
    library = ctypes.CDLL(None)
    library.mallopt(mmap_max, 0)
    library.mallopt(trim_threshold, 2**31 - 1)


def train(work: Path, stages: list[str]) -> None:
    keep_freed_memory()
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    trainer = Trainer(work)
    if "first" in stages:
        trainer.first_stage()
    for stage in (SECOND, THIRD, FOURTH, FIFTH):
        if stage.name in stages:
            trainer.resume(work / f"acoustic-{stage.before}.pt")
            trainer.judged_stage(stage)


if __name__ == "__main__":
    train(WORK, sys.argv[1:] or ["first", "second", "third", "fourth", "fifth"])
