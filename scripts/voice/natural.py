"""The figures that tell speech of a person from speech of a machine, each from one utterance.

Variance and flux of the spectrum show over-smoothing; F0's small movements show a synthetic contour. They must hold
together: scaling the variance alone mends the first, and not the others.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import signal as processing

from measures import ROWS_PER_SECOND, cepstra, is_loud, log_bands, loud_span, periodicity, spectrogram
from praat import pitch_tracks
from report import Bar, Report, within
from wave_file import read_wave

Floats = NDArray[np.float64]
# praat's floor and ceiling: a higher floor means shorter windows, and more movement from row to row.
FLOOR_HZ, CEILING_HZ = 65, 420
JUMP_SEMITONES = 2  # larger steps within 5 ms are errors of the tracker
HIGH_HZ = 8000


def semitones(f0: Floats) -> Floats:
    return 12 * np.log2(np.where(f0 > 0, f0, 1))


def root_mean_square(steps: Floats) -> float:
    usual = steps[np.abs(steps) < JUMP_SEMITONES]
    return float(np.sqrt((usual**2).mean())) if len(usual) else 0.0


def f0_figures(f0: Floats) -> dict[str, float]:
    voiced, pitch = f0 > 0, semitones(f0)
    slope = np.diff(pitch)[voiced[1:] & voiced[:-1]]
    bend = np.diff(pitch, 2)[voiced[2:] & voiced[1:-1] & voiced[:-2]]
    low, high = np.percentile(pitch[voiced], [10, 90])
    return {
        "F0 slope": float(np.log(root_mean_square(slope) + 1e-3)),
        "F0 second difference": float(np.log(root_mean_square(bend) + 1e-3)),
        "F0 span": float(high - low),
    }


def modulation(bands: Floats, low_hz: float, high_hz: float) -> float:
    """Mean over the bands of the logarithm of the envelope's power between two rates of change."""
    speech = bands[loud_span(bands, 40)]
    rates, power = processing.welch(speech - speech.mean(0), ROWS_PER_SECOND, nperseg=128, noverlap=96, nfft=256, axis=0)
    return float(np.log(power[(rates >= low_hz) & (rates <= high_hz)].sum(0)).mean())


def high_share(signal: NDArray[np.float32]) -> float:
    """The share of the power that lies above 8 kHz, where there is speech."""
    frequencies, power = spectrogram(signal)
    total = power.sum(0)
    speech = total > np.percentile(total, 95) * 10**-3.5
    return float(power[frequencies > HIGH_HZ][:, speech].sum() / power[:, speech].sum())


def figures(wave: Path, f0: Floats) -> dict[str, float]:
    signal, _ = read_wave(wave)
    bands = log_bands(signal)
    coefficients = cepstra(bands)
    speech = coefficients[loud_span(bands)]
    flux = np.sqrt((np.diff(speech[:, 1:], axis=0) ** 2).sum(1))
    by_band = periodicity(signal, f0).mean(0)
    span = loud_span(bands, 40)
    return f0_figures(f0) | {
        "variance of cepstra 9 to 24": float(np.log(coefficients[is_loud(bands)].var(0)[9:25]).mean()),
        "cepstral flux": float(np.log(np.median(flux))),
        "modulation 16 to 50 Hz": modulation(bands, 16, 50),
        "share above 8 kHz": high_share(signal),
        "periodicity 2 to 8 kHz": float(by_band[2:5].mean()),
        "length": (span.stop - span.start) / ROWS_PER_SECOND,
    }


@dataclass
class Figures:
    """Each figure for each utterance."""

    values: dict[str, Floats]

    def mean(self, name: str) -> float:
        return float(self.values[name].mean())

    @property
    def high_db(self) -> float:
        """Of the mean share: loud sentences count as others."""
        return float(10 * np.log10(self.mean("share above 8 kHz")))

    @property
    def high_db_of_each(self) -> float:
        return float((10 * np.log10(self.values["share above 8 kHz"])).mean())


def figures_of(waves: list[Path], floor_hz: float = FLOOR_HZ) -> Figures:
    tracks = pitch_tracks(waves, floor_hz, CEILING_HZ)
    rows = [figures(wave, f0) for wave, f0 in zip(waves, tracks)]
    return Figures({name: np.array([row[name] for row in rows]) for name in rows[0]})


def duration_spread(utterances: list[list[tuple[str, float]]]) -> float:
    """Deviation of the logarithm of a phone's length from what that phone has on average; pauses left out."""
    lengths: dict[str, list[float]] = {}
    for phones in utterances:
        for phone, frames in phones:
            if phone != "pau":
                lengths.setdefault(phone, []).append(float(np.log(max(frames, 0.5))))
    return float(np.concatenate([np.array(values) - np.mean(values) for values in lengths.values()]).std())


# Name, unit, margin around the person's figure.
MARGINS = (
    ("variance of cepstra 9 to 24", "ln", 0.35),
    ("cepstral flux", "ln", 0.16),
    ("modulation 16 to 50 Hz", "ln", 0.35),
    ("F0 slope", "ln", 0.25),
    ("F0 second difference", "ln", 0.35),
    ("periodicity 2 to 8 kHz", "", 0.06),
)


def compare(report: Report, voice: Figures, person: Figures, with_bars: bool) -> None:
    for name, unit, margin in MARGINS:
        bar = within(person.mean(name), margin) if with_bars else None
        report.figure(name, voice.mean(name), unit, bar, person.mean(name))
    span = person.mean("F0 span")
    bar = Bar(0.85 * span, 1.25 * span) if with_bars else None
    report.figure("F0 span, 10 to 90 %", voice.mean("F0 span"), "semitones", bar, span)
    bar = within(person.high_db, 3) if with_bars else None
    report.figure("energy above 8 kHz", voice.high_db, "dB", bar, person.high_db)
    report.figure("the same, mean of the sentences' dB", voice.high_db_of_each, "dB", None, person.high_db_of_each)
    ratio = float((voice.values["length"] / person.values["length"]).mean())
    report.figure("length of the speech, relative", ratio, "", Bar(0.85, 1.15) if with_bars else None, 1)
