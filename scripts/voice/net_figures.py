#!/usr/bin/python3
"""Figures of the acoustic model on held-out sentences, without audio, in seconds: `net_figures.py [MODEL.pt...]`.

Envelopes and F0 are predicted at the recordings' own durations and styles, and set beside the person's rows.
"""

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch
from numpy.typing import NDArray

from acoustic import load_model, predict_batch
from batches import LOG_F0, VOICING, Statistics, collate
from dataset import FRAME_ROWS, SPEAKERS, STYLES, TUNE_ROWS, Example, load, spread_within_phones
from model import BANDS, PITCH_VALUES, AcousticModel
from phonemes import PAUSE, PERIOD, PHONE
from recordings import WORK

ROW_RATE_HZ = 200
SEMITONES = 12 / np.log(2)
LOUD = 4.0  # nepers below the loud rows: what is softer is silence
TUNES = (-2.0, -1.0, 0.0, 1.0, 2.0, 2.5)
TUNE = STYLES.index("tune")

Floats = NDArray[np.float32]
TO_CEPSTRA = np.linalg.inv(np.cos(np.outer(np.arange(BANDS), np.linspace(0, np.pi, BANDS))))


@dataclass
class Shape:
    """Means over sentences; natural logarithms where marked."""

    low_variance: float  # ln, cepstra 1 to 8
    high_variance: float  # ln, cepstra 9 to 24
    flux: float  # ln
    modulation: float  # ln, 16 to 50 Hz
    span: float  # semitones, F0 from 10 to 90 %
    slope: float  # ln, of F0 from row to row
    bending: float  # ln, of the second difference

    def __str__(self) -> str:
        return " ".join(f"{name} {value:.2f}" for name, value in self.__dict__.items())


def modulation_power(bands: Floats) -> float:
    centred = bands - bands.mean(0)
    spectrum = np.abs(np.fft.rfft(centred * np.hanning(len(bands))[:, None], 1024, axis=0)) ** 2 / len(bands)
    frequency = np.fft.rfftfreq(1024, 1 / ROW_RATE_HZ)
    return float(spectrum[(frequency > 16) & (frequency <= 50)].sum(0).mean())


def shape_of(all_rows: list[Floats]) -> Shape:
    values = []
    for rows in all_rows:
        bands, voiced = rows[:, PITCH_VALUES:], rows[:, VOICING] > 0.5
        loud = bands.mean(1) > np.percentile(bands.mean(1), 95) - LOUD
        cepstra = bands @ TO_CEPSTRA
        variance = np.log(cepstra[loud].var(0))
        flux = np.median(np.sqrt((np.diff(cepstra[:, 1:25], axis=0) ** 2).sum(1))[loud[1:]])
        log_f0 = rows[:, LOG_F0] * SEMITONES
        first = np.diff(log_f0)[voiced[1:] & voiced[:-1]]
        second = np.diff(log_f0, 2)[voiced[2:] & voiced[1:-1] & voiced[:-2]]
        span = np.subtract(*np.percentile(log_f0[voiced], [90, 10]))
        roots = [0.5 * np.log((difference**2).mean()) for difference in (first, second)]
        modulation = np.log(modulation_power(bands[:1024]))
        values.append([variance[1:9].mean(), variance[9:25].mean(), np.log(flux), modulation, span, *roots])
    return Shape(*np.mean(values, 0))


class Reader:
    """The model's reading of examples, at their own durations and with any style."""

    def __init__(self, model: AcousticModel, statistics: Statistics) -> None:
        self.model = model
        self.statistics = statistics

    def rows(self, example: Example, speaker: int = 0) -> tuple[Floats, Floats, Floats]:
        """Rows in their own units, and mean and deviation of each phone's ln duration."""
        batch = collate([example], self.statistics)
        batch.speaker = torch.eye(len(SPEAKERS))[speaker : speaker + 1]
        with torch.no_grad():
            predicted = predict_batch(self.model, batch)
        pitch = predicted.pitch[0].numpy().copy()
        pitch[:, VOICING] = 1 / (1 + np.exp(-pitch[:, VOICING]))
        rows = np.concatenate([pitch, predicted.bands[0].numpy()], 1)
        rows = rows * self.statistics.deviation + self.statistics.mean
        return rows, predicted.log_durations[0].numpy(), np.exp(predicted.log_spreads[0].numpy())


def final_falls(examples: list[Example], all_rows: list[Floats]) -> Floats:
    """Of each sentence's last clause: F0 of its last voiced 80 ms above the clause's mean, in semitones."""
    falls = []
    for example, rows in zip(examples, all_rows):
        first, end = example.clauses[-1]
        starts = FRAME_ROWS * np.concatenate([[0], np.cumsum(example.durations)])
        clause = rows[starts[first] : starts[end]]
        voiced = clause[clause[:, VOICING] > 0.5, LOG_F0] * SEMITONES
        if len(voiced) > 2 * TUNE_ROWS:
            falls.append(voiced[-TUNE_ROWS:].mean() - voiced.mean())
    return np.array(falls)


def with_style(example: Example, style: Floats) -> Example:
    """The example with one style [4] in all its clauses."""
    return replace(example, style=np.where(example.ids[PHONE] == PAUSE, 0, style[:, None]).astype(np.float32))


def within_phones(examples: list[Example], log_durations: list[Floats]) -> float:
    return spread_within_phones([replace(one, durations=np.exp(values)) for one, values in zip(examples, log_durations)])


def describe(path: Path, examples: list[Example]) -> None:
    model, statistics, style = load_model(path)
    reader = Reader(model, statistics)
    torch.manual_seed(1)
    rng = np.random.RandomState(1)
    read = [reader.rows(example) for example in examples]
    rows = [one for one, _, _ in read]
    print(f"{path.name}: {shape_of(rows)}")
    means = [np.maximum(mean, 0) for _, mean, _ in read]
    sampled = [np.log(np.maximum(1, np.round(np.exp(m + s * rng.randn(len(m)))))) for _, m, s in read]
    within = [within_phones(examples, values) for values in (means, sampled)]
    length = np.exp(np.concatenate(means)).sum() / sum(example.durations.sum() for example in examples)
    print(f"  ln duration within a phone: mean {within[0]:.2f}, sampled {within[1]:.2f}; length {length:.2f}")
    for speaker in range(1, len(SPEAKERS)):
        print(f"  {SPEAKERS[speaker]}: {shape_of([reader.rows(example, speaker)[0] for example in examples])}")
    correlation = np.linalg.cholesky(np.array(style["terminals"][PERIOD]["correlation"]) + 1e-6 * np.eye(len(STYLES)))
    drawn = [with_style(one, np.clip(correlation @ rng.randn(len(STYLES)), -2.5, 2.5).astype(np.float32)) for one in examples]
    falls = final_falls(drawn, [reader.rows(example)[0] for example in drawn])
    print(f"  phrase ends with drawn styles: {falls.mean():.2f} deviation {falls.std():.2f} semitones")
    for tune in TUNES:
        asked = np.zeros(len(STYLES), np.float32)
        asked[TUNE] = tune
        ended = [with_style(one, asked) for one in examples]
        falls = final_falls(ended, [reader.rows(example)[0] for example in ended])
        print(f"  tune {tune:+.1f}: ends at {falls.mean():+.2f} semitones", flush=True)


def main(paths: list[Path]) -> None:
    torch.set_num_threads(1)
    examples = [one for one in load(WORK) if one.held_out and one.speaker == 0 and one.clauses]
    print(f"person: {shape_of([example.rows for example in examples])}")
    within = spread_within_phones(examples)
    falls = final_falls(examples, [example.rows for example in examples])
    print(f"  ln duration within a phone {within:.2f}; phrase ends {falls.mean():.2f} deviation {falls.std():.2f} semitones")
    for path in paths:
        describe(path, examples)


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]] or [WORK / "acoustic.pt"])
