"""What can be measured of a signal: levels, silence, spectra, and how periodic each band is."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import signal as processing

Signal = NDArray[np.float32]
Floats = NDArray[np.float64]

SAMPLE_RATE = 24000
ROW = 120  # samples between two rows: 5 ms; row r is centred on sample 120 r + 60
ROWS_PER_SECOND = SAMPLE_RATE // ROW
BANDS = 80
WARP = 0.466  # all-pass factor that comes near the mel scale at 24 kHz
SILENCE_DB = -35.0  # relative to the utterance's own level
PERIODICITY_BANDS = ((50, 1000), (1000, 2000), (2000, 4000), (4000, 6000), (6000, 8000), (8000, 11500))


def levels_db(signal: Signal, rate: int, step_seconds: float) -> Floats:
    """The level of each step, in dB of full scale."""
    size = int(rate * step_seconds)
    steps = signal[: len(signal) // size * size].reshape(-1, size).astype(np.float64)
    return 10 * np.log10((steps**2).mean(1) + 1e-12)


def level_db(signal: Signal) -> float:
    return float(10 * np.log10((signal.astype(np.float64) ** 2).mean() + 1e-12)) if len(signal) else -120.0


def active_level_db(signal: Signal, rate: int = SAMPLE_RATE) -> float:
    """The level of what lies within 30 dB of the loud parts."""
    steps = levels_db(signal, rate, 0.01)
    return float(10 * np.log10((10 ** (steps[steps > np.percentile(steps, 95) - 30] / 10)).mean()))


def leading_silence_seconds(signal: Signal, rate: int) -> float:
    """Time until the signal first comes within 35 dB of its own level."""
    step = 0.005
    loud = levels_db(signal, rate, step) > level_db(signal) + SILENCE_DB
    return float(np.argmax(loud)) * step if loud.any() else len(signal) / rate


def warped(radians: Floats) -> Floats:
    return radians + 2 * np.arctan2(WARP * np.sin(radians), 1 - WARP * np.cos(radians))


def bands_below(hertz: float) -> int:
    return int((np.linspace(0, np.pi, BANDS) <= warped(np.array(2 * np.pi * hertz / SAMPLE_RATE))).sum())


@lru_cache(maxsize=4)
def band_weights(size: int) -> Floats:
    """[bins, bands] of a transform of `size` points: triangles, evenly spaced on the warped scale, each with the sum 1."""
    places = warped(np.linspace(0, np.pi, size // 2 + 1))
    centres = np.linspace(0, np.pi, BANDS)
    triangles = np.maximum(0, 1 - np.abs(places[:, None] - centres) / centres[1])
    return triangles / triangles.sum(0)


def log_bands(signal: Signal) -> Floats:
    """[rows, 80]: natural logarithm of the amplitude in each band, from windows of 25 ms."""
    window = np.hanning(600)
    frames = np.lib.stride_tricks.sliding_window_view(np.pad(signal.astype(np.float64), 300), 600)[::ROW]
    power = np.abs(np.fft.rfft(frames * (window / np.sqrt((window**2).sum())), 1024, axis=1)) ** 2
    return 0.5 * np.log(power @ band_weights(1024) + 1e-9)


@lru_cache(maxsize=1)
def cepstrum_matrix() -> Floats:
    cosines = np.cos(np.outer(np.arange(BANDS), np.linspace(0, np.pi, BANDS)))
    return np.linalg.inv(cosines)[:, :25]


def cepstra(bands: Floats) -> Floats:
    """[rows, 25] of log bands."""
    return bands @ cepstrum_matrix()


def is_loud(bands: Floats, range_db: float = 35) -> NDArray[np.bool_]:
    """Rows within a range of the loud ones."""
    level = 10 * np.log10(np.exp(2 * bands).mean(1))
    return level > np.percentile(level, 95) - range_db


def loud_span(bands: Floats, range_db: float = 35) -> slice:
    """From the first loud row to the last."""
    loud = np.flatnonzero(is_loud(bands, range_db))
    return slice(int(loud[0]), int(loud[-1]) + 1)


def periodicity(signal: Signal, f0: Floats) -> Floats:
    """[voiced rows, bands]: how alike a band is to itself one period later, 0 to 1.

    The correlation is a complex one over 15 ms, so that phase does not matter; what noise would reach by chance is taken off.
    """
    voiced = np.flatnonzero(f0 > 0)
    result = np.zeros((len(voiced), len(PERIODICITY_BANDS)))
    if not len(voiced):
        return result
    # Each band is moved down to 0 Hz and kept at a third of the rate.
    rate, margin, half = SAMPLE_RATE // 3, 200, 60
    size = -(-(len(signal) + 2400) // 4800) * 4800
    spectrum = np.fft.fft(signal.astype(np.float64), size)
    lag = np.maximum(1, np.round(rate / f0[voiced]).astype(int))
    first = margin + (voiced * ROW + ROW // 2) // 3 - lag // 2
    window = np.arange(-half, half)
    for band, (low, high) in enumerate(PERIODICITY_BANDS):
        part = spectrum[int(low * size / SAMPLE_RATE) : int(high * size / SAMPLE_RATE)]
        moved = np.pad(np.fft.ifft(np.pad(part, (0, size // 3 - len(part)))), margin)
        now, later = moved[first[:, None] + window], moved[(first + lag)[:, None] + window]
        energies = (np.abs(now) ** 2).sum(1) * (np.abs(later) ** 2).sum(1)
        alike = np.abs((now * later.conj()).sum(1)) ** 2 / (energies + 1e-30)
        chance = min(0.9, 1 / ((high - low) * 0.015))
        result[:, band] = np.sqrt(np.clip((alike - chance) / (1 - chance), 0, 1))
    return result


def spectrogram(signal: Signal, window: int = 512) -> tuple[Floats, Floats]:
    """Frequencies in Hz, and power [frequencies, times]."""
    frequencies, _, transform = processing.stft(signal.astype(np.float64), SAMPLE_RATE, nperseg=window)
    return frequencies, np.abs(transform) ** 2
