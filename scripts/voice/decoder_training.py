#!/usr/bin/python3
"""Trains the decoder: `decoder_training.py [spectra] [discriminators] [predicted]`. One thread, fixed seeds, schedules by steps.

First stage: spectra of several resolutions. Pulses and noise differ from the recording's in every sample, so the loss compares
distributions: the distance of two readings (other noise, other pulses) from the recording, less half of their distance from each other.
Without the second term, the net learns to avoid noise, and voices buzz. Second stage: discriminators of spectrograms. Third
stage, when the acoustic model is there: the same on envelopes that it predicts, which is what the decoder hears in service.
"""

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # the backward pass would start a pool of its own, and spin

import numpy as np
import soundfile
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from acoustic import keep_freed_memory, predict, set_rate
from analysis import load_features
from dataset import load
from decoder import ALL_PASS, BANDS, CONTEXT, DELAY, HOP, SAMPLE_RATE, TAIL, TRANSFORM, Decoder, to_mel
from recordings import WORK, held_out, texts

SEED = 1
SAVE_STEPS = 200
ROWS = 104  # of a stretch
UNCOMPARED = TRANSFORM  # its first samples lack the ringing of the rows before
GRADIENT_MAX = 2.0
AVERAGE = 0.995  # the weights that are kept are a moving average
LEAST_RATE = 0.05  # of the peak, where each stage ends

SPECTRA_STEPS, SPECTRA_STRETCHES, SPECTRA_RATE = 3000, 6, 1e-3
JUDGED_STEPS, JUDGED_STRETCHES, JUDGED_RATE, JUDGES_RATE = 3600, 6, 3e-4, 4e-4
PREDICTED_STEPS, PREDICTED_RATE = 800, 3e-4
PREDICTED_SHARE = 0.6  # of the steps; the others have the recordings' envelopes
PREDICTED_UTTERANCES = 900
WARM_UP = 100
JUDGES_WARM_UP = 300
# What counts beside passing. A predicted envelope is not the recording's: to come near its spectra would mean more noise.
NATURAL_WEIGHTS, PREDICTED_WEIGHTS = (8.0, 1.0), (1.0, 0.0)  # spectra and likeness

TRANSFORMS = ((2048, 480), (1024, 240), (512, 120), (256, 60))  # window and step
JUDGED_TRANSFORMS = ((2048, 512), (768, 192), (256, 64))
POWER_FLOOR = 1e-8

# Other voices have other levels, spectra and F0 than the recordings: half of the stretches are filtered and labelled with a wrong F0.
VARIED_SHARE = 0.5
TILT_DEVIATIONS = (0.3, 0.25, 0.15, 0.1, 0.08, 0.06)  # of the filter's cosine series, natural logarithm
LOG_F0_ERROR = 0.25
FILTER_EDGE = 240
SPAN = ROWS * HOP - UNCOMPARED + 2 * FILTER_EDGE  # what is filtered, before the edges go


@dataclass
class Recording:
    samples: NDArray[np.float32]
    f0: NDArray[np.float32]  # continuous
    voiced: NDArray[np.float32]
    bands: NDArray[np.float32]


@dataclass
class Batch:
    f0: Tensor  # [B, ROWS + 8]
    voiced: Tensor
    bands: Tensor  # [B, ROWS + 8, BANDS]
    log_f0_error: Tensor  # [B, 1]
    target: Tensor  # [B, samples], what is compared

    def doubled(self) -> "Batch":
        return Batch(*(torch.cat([value, value]) for value in self.__dict__.values()))


def load_recording(name: str, work: Path) -> Recording:
    f0, bands = load_features(name, work)
    samples, _ = soundfile.read(work / "wav" / f"{name}.wav", dtype="float32")
    voiced = np.flatnonzero(f0 > 0)
    log_f0 = np.interp(np.arange(len(f0)), voiced, np.log(f0[voiced])) if len(voiced) else np.full(len(f0), 5.0)
    return Recording(samples, np.exp(log_f0).astype(np.float32), (f0 > 0).astype(np.float32), bands)


def load_recordings(work: Path) -> tuple[dict[str, Recording], dict[str, Recording]]:
    """For training, and held out."""
    kept_out = set(held_out(work))
    every = {name: load_recording(name, work) for name in texts(work)}
    long_enough = {name: one for name, one in every.items() if len(one.f0) > ROWS + 3 * CONTEXT}
    training = {name: one for name, one in long_enough.items() if name not in kept_out}
    return training, {name: one for name, one in long_enough.items() if name in kept_out}


def with_predicted_bands(recordings: dict[str, Recording], work: Path, rng: np.random.RandomState) -> list[Recording]:
    """Some of the recordings, with the acoustic model's envelopes at their own durations and styles."""
    own = [one for one in load(work) if one.name in recordings]
    chosen = [own[place] for place in rng.permutation(len(own))[:PREDICTED_UTTERANCES]]
    results = []
    for example, bands in zip(chosen, predict(chosen, SEED, work / "acoustic.pt")):
        one = recordings[example.name]
        rows = min(len(bands), len(one.f0))
        assert abs(len(bands) - len(one.f0)) <= 2, f"{example.name}: phones and rows disagree"
        results.append(Recording(one.samples[: rows * HOP], one.f0[:rows], one.voiced[:rows], bands[:rows]))
    return results


class Stretches:
    """Random stretches of recordings, equally likely at each place."""

    def __init__(self, recordings: list[Recording], rng: np.random.RandomState) -> None:
        self.recordings, self.rng = recordings, rng
        lengths = np.array([len(one.f0) for one in recordings], np.float64)
        self.likelihood = lengths / lengths.sum()
        mel = to_mel(torch.linspace(0, np.pi, SPAN // 2 + 1), ALL_PASS)
        orders = np.arange(len(TILT_DEVIATIONS))[:, None]
        self.filter_waves = np.cos(orders * mel.numpy()).astype(np.float32)
        self.band_waves = np.cos(orders * np.linspace(0, np.pi, BANDS)).astype(np.float32)

    def stretch(self) -> tuple[NDArray[np.float32], ...]:
        one = self.recordings[self.rng.choice(len(self.recordings), p=self.likelihood)]
        first = self.rng.randint(2 * CONTEXT, len(one.f0) - ROWS - CONTEXT + 1)
        rows = slice(first - CONTEXT, first + ROWS + CONTEXT)
        start = first * HOP - DELAY + UNCOMPARED - FILTER_EDGE
        target, bands, error = one.samples[start : start + SPAN], one.bands[rows], 0.0
        if self.rng.rand() < VARIED_SHARE:
            tilt = (self.rng.randn(len(TILT_DEVIATIONS)) * TILT_DEVIATIONS).astype(np.float32)
            target = np.fft.irfft(np.fft.rfft(target) * np.exp(tilt @ self.filter_waves), SPAN)
            bands = bands + tilt @ self.band_waves
            error = LOG_F0_ERROR * self.rng.randn()
        compared = target[FILTER_EDGE : SPAN - FILTER_EDGE]
        return one.f0[rows], one.voiced[rows], bands, np.array([error]), compared

    def batch(self, count: int) -> Batch:
        columns = zip(*(self.stretch() for _ in range(count)))
        return Batch(*(torch.from_numpy(np.stack(column).astype(np.float32)) for column in columns))


def speak(decoder: Decoder, batch: Batch) -> Tensor:
    count = len(batch.f0)
    state = torch.rand(count, 1), torch.zeros(count, 2, 1, HOP), torch.zeros(count, TAIL)
    noise = torch.randn(count, ROWS, HOP)
    samples, _ = decoder(batch.f0, batch.voiced, batch.bands, noise, state, log_f0_error=batch.log_f0_error)
    return samples[:, UNCOMPARED:]


@dataclass
class Source:
    stretches: Stretches
    share: float  # of the steps
    spectra_weight: float
    likeness_weight: float


class LogSpectrum(nn.Module):
    """Log amplitudes of bins, and of broader bands, at one resolution."""

    def __init__(self, size: int, step: int) -> None:
        super().__init__()
        self.size, self.step = size, step
        self.register_buffer("window", torch.hann_window(size))
        count = min(BANDS, size // 16)
        place = to_mel(torch.linspace(0, np.pi, size // 2 + 1), ALL_PASS) * ((count - 1) / np.pi)
        triangles = torch.relu(1 - torch.abs(place.unsqueeze(1) - torch.arange(count)))
        self.register_buffer("bands", triangles / triangles.sum(0))

    def power(self, samples: Tensor) -> Tensor:
        """[B, frames, bins]"""
        spectrum = torch.stft(samples, self.size, self.step, window=self.window, center=False, return_complex=True)
        parts = torch.view_as_real(spectrum.transpose(1, 2))
        return (parts * parts).sum(-1) / self.size + POWER_FLOOR

    def forward(self, samples: Tensor) -> tuple[Tensor, Tensor]:
        power = self.power(samples)
        return 0.5 * torch.log(power), 0.5 * torch.log(power @ self.bands)


def spectral_distance(one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]) -> Tensor:
    """Both terms are distances for which the loss below is least when the distributions are equal."""
    frames = ((one[1] - other[1]) ** 2).mean(-1)
    return (one[0] - other[0]).abs().mean() + torch.sqrt(frames + 1e-6).mean()


class SpectralLoss(nn.Module):
    """The energy distance of two readings from the recording, after A. Gritsenko et al., 2020."""

    def __init__(self) -> None:
        super().__init__()
        self.resolutions = nn.ModuleList([LogSpectrum(size, step) for size, step in TRANSFORMS])

    def forward(self, readings: Tensor, target: Tensor) -> Tensor:
        """readings [2 B, samples], target [B, samples]"""
        total = torch.zeros(())
        for resolution in self.resolutions:
            bins, bands = resolution(readings)
            first, second = zip(bins.chunk(2), bands.chunk(2))
            wanted = resolution(target)
            apart = spectral_distance(first, second)
            total = total + 0.5 * (spectral_distance(first, wanted) + spectral_distance(second, wanted) - apart)
        return total / len(self.resolutions)


class Judge(nn.Module):
    """A discriminator of spectrograms at one resolution."""

    def __init__(self, size: int, step: int, channels: int = 16) -> None:
        super().__init__()
        self.spectrum = LogSpectrum(size, step)
        shapes = [(1, channels, 9), (channels, channels, 9), (channels, 2 * channels, 9), (2 * channels, 2 * channels, 5)]
        layers = [nn.Conv2d(size, out, (3, wide), (1, 2), padding=(1, wide // 2)) for size, out, wide in shapes]
        self.layers = nn.ModuleList([nn.utils.weight_norm(layer) for layer in layers])
        self.last = nn.utils.weight_norm(nn.Conv2d(2 * channels, 1, 3, padding=1))

    def forward(self, samples: Tensor) -> tuple[Tensor, list[Tensor]]:
        """The judgement at each place (1 for the person), and all layers' outputs."""
        values = (0.5 * torch.log(self.spectrum.power(samples)) + 4).unsqueeze(1) / 2
        outputs = []
        with torch.autocast("cpu", torch.bfloat16):
            for layer in self.layers:
                values = nn.functional.leaky_relu(layer(values), 0.1)
                outputs.append(values)
            judgement = self.last(values)
        return judgement.float(), outputs


def likeness(wanted: list[Tensor], got: list[Tensor]) -> Tensor:
    return sum(((one.float() - other.float()).abs().mean() for one, other in zip(wanted, got)), torch.zeros(()))


def falling(step: int, steps: int) -> float:
    """The rate as a share of its peak: up in the first steps, then down along a cosine."""
    return min(1.0, step / WARM_UP) * (LEAST_RATE + (1 - LEAST_RATE) * 0.5 * (1 + np.cos(np.pi * step / steps)))


class Trainer:
    def __init__(self, work: Path) -> None:
        self.work = work
        self.rng = np.random.RandomState(SEED)
        self.training, unseen = load_recordings(work)
        self.decoder = Decoder()
        bands = np.concatenate([one.bands for one in list(self.training.values())[::5]])
        self.decoder.mean.copy_(torch.from_numpy(bands.mean(0)))
        self.decoder.deviation.copy_(torch.from_numpy(bands.std(0)))
        self.average = self.weights()
        self.loss = SpectralLoss()
        self.unseen = Stretches(list(unseen.values()), np.random.RandomState(SEED)).batch(16)
        self.unseen.log_f0_error.zero_()
        self.recent: list[list[float]] = []
        self.started = time.monotonic()
        minutes = sum(len(one.f0) for one in self.training.values()) * HOP / SAMPLE_RATE / 60
        size = sum(value.numel() for value in self.decoder.parameters())
        print(f"{minutes:.1f} minutes, {len(unseen)} held out, {size / 1e6:.2f} M parameters", flush=True)

    def resume(self, name: str) -> None:
        self.decoder.load_state_dict(torch.load(self.work / name)["model"])
        self.average = self.weights()

    def weights(self) -> dict[str, Tensor]:
        return {name: value.detach().clone() for name, value in self.decoder.named_parameters()}

    def save(self, name: str, stage: str, step: int) -> None:
        model = self.decoder.state_dict() | self.average
        torch.save({"model": model, "stage": stage, "step": step}, self.work / "decoder-unfinished.pt")
        os.replace(self.work / "decoder-unfinished.pt", self.work / name)  # others may be reading it

    def report(self, stage: str, step: int) -> None:
        """The latest steps' mean losses, and the spectral loss of the averaged weights on what they have not seen."""
        current = self.weights()
        self.decoder.load_state_dict(self.average, strict=False)
        with torch.no_grad(), torch.random.fork_rng():
            torch.manual_seed(SEED)
            unseen = self.loss(speak(self.decoder, self.unseen.doubled()), self.unseen.target).item()
        self.decoder.load_state_dict(current, strict=False)
        means = " ".join(f"{value:.4f}" for value in np.mean(self.recent, 0))
        print(f"{stage} {step}, {time.monotonic() - self.started:.0f} s: {means}; held out {unseen:.4f}", flush=True)
        self.recent = []

    def step(self, optimiser: torch.optim.Optimizer, loss: Tensor, keep: float) -> None:
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.decoder.parameters(), GRADIENT_MAX)
        optimiser.step()
        for name, value in self.decoder.named_parameters():
            self.average[name].lerp_(value.detach(), 1 - keep)

    def spectra(self) -> None:
        stretches = Stretches(list(self.training.values()), self.rng)
        optimiser = torch.optim.Adam(self.decoder.parameters(), SPECTRA_RATE, betas=(0.9, 0.99))
        for step in range(1, SPECTRA_STEPS + 1):
            set_rate(optimiser, SPECTRA_RATE * falling(step, SPECTRA_STEPS))
            batch = stretches.batch(SPECTRA_STRETCHES)
            loss = self.loss(speak(self.decoder, batch.doubled()), batch.target)
            self.step(optimiser, loss, min(AVERAGE, step / (step + 10)))
            self.recent.append([loss.item()])
            self.save_sometimes("spectra", step, SPECTRA_STEPS)
        self.save("decoder-spectra.pt", "spectra", SPECTRA_STEPS)

    def save_sometimes(self, stage: str, step: int, steps: int) -> None:
        if step % SAVE_STEPS == 0 or step == steps:
            self.report(stage, step)
            self.save("decoder.pt", stage, step)

    def judged(self, stage: str, sources: list[Source], steps: int, rate: float, judges: nn.ModuleList) -> None:
        """Reports spectral loss, detection, passing and likeness."""
        optimiser = torch.optim.Adam(self.decoder.parameters(), rate, betas=(0.8, 0.99))
        judging = torch.optim.Adam(judges.parameters(), JUDGES_RATE, betas=(0.8, 0.99))
        for step in range(1, steps + 1):
            set_rate(optimiser, rate * falling(step, steps))
            set_rate(judging, JUDGES_RATE * max(0.2, falling(step, steps)))
            source = sources[self.rng.choice(len(sources), p=[one.share for one in sources])]
            batch = source.stretches.batch(JUDGED_STRETCHES)
            readings = speak(self.decoder, batch.doubled())
            fake = readings[:JUDGED_STRETCHES]

            detection, seen = torch.zeros(()), []
            for judge in judges:
                judgement, outputs = judge(torch.cat([batch.target, fake.detach()]))
                real, false = judgement.chunk(2)
                detection = detection + ((real - 1) ** 2).mean() + (false**2).mean()
                seen.append([output[:JUDGED_STRETCHES].detach() for output in outputs])
            judging.zero_grad()
            detection.backward()
            judging.step()

            judges.requires_grad_(False)
            passing, alike = torch.zeros(()), torch.zeros(())
            for judge, wanted in zip(judges, seen):
                judgement, outputs = judge(fake)
                passing, alike = passing + ((judgement - 1) ** 2).mean(), alike + likeness(wanted, outputs)
            spectral = self.loss(readings, batch.target)
            trust = min(1.0, step / JUDGES_WARM_UP) if stage == "discriminators" else 1.0
            judged = passing + source.likeness_weight * alike
            self.step(optimiser, source.spectra_weight * spectral + trust * judged, AVERAGE)
            judges.requires_grad_(True)
            self.recent.append([spectral.item(), detection.item(), passing.item(), alike.item()])
            self.save_sometimes(stage, step, steps)
        self.save(f"decoder-{stage}.pt", stage, steps)
        torch.save(judges.state_dict(), self.work / "decoder-judges.pt")

    def discriminators(self) -> None:
        stretches = Stretches(list(self.training.values()), self.rng)
        judges = nn.ModuleList([Judge(size, step) for size, step in JUDGED_TRANSFORMS])
        self.judged("discriminators", [Source(stretches, 1, *NATURAL_WEIGHTS)], JUDGED_STEPS, JUDGED_RATE, judges)

    def predicted(self) -> None:
        heard = Stretches(with_predicted_bands(self.training, self.work, self.rng), self.rng)
        natural = Stretches(list(self.training.values()), self.rng)
        judges = nn.ModuleList([Judge(size, step) for size, step in JUDGED_TRANSFORMS])
        judges.load_state_dict(torch.load(self.work / "decoder-judges.pt"))
        sources = [
            Source(heard, PREDICTED_SHARE, *PREDICTED_WEIGHTS),
            Source(natural, 1 - PREDICTED_SHARE, *NATURAL_WEIGHTS),
        ]
        self.judged("predicted", sources, PREDICTED_STEPS, PREDICTED_RATE, judges)


def train(work: Path, stages: list[str]) -> None:
    keep_freed_memory()
    torch.set_num_threads(1)
    for stage, begin in (("spectra", ""), ("discriminators", "decoder-spectra.pt"), ("predicted", "decoder-discriminators.pt")):
        if stage in stages:
            torch.manual_seed(SEED)  # each stage is the same, whether it runs alone or after another
            trainer = Trainer(work)
            if begin:
                trainer.resume(begin)
            getattr(trainer, stage)()


if __name__ == "__main__":
    train(WORK, sys.argv[1:] or ["spectra", "discriminators", "predicted"])
