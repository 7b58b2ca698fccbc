"""What can be measured of a signal: level, silence, pitch."""

import numpy as np
from numpy.typing import NDArray

Signal = NDArray[np.float32]

PITCH_LOWEST_HZ = 60.0
PITCH_HIGHEST_HZ = 420.0
PERIODIC = 0.6  # the least autocorrelation, of 1, at which a frame counts as voiced
SILENCE_DB = -35.0  # relative to the utterance's own level


def levels_db(signal: Signal, rate: int, step_seconds: float) -> NDArray[np.float64]:
    """The level of each step, in dB of full scale."""
    size = int(rate * step_seconds)
    steps = signal[: len(signal) // size * size].reshape(-1, size).astype(np.float64)
    return 10 * np.log10((steps**2).mean(1) + 1e-12)


def level_db(signal: Signal) -> float:
    return float(10 * np.log10((signal.astype(np.float64) ** 2).mean() + 1e-12)) if len(signal) else -120.0


def leading_silence_seconds(signal: Signal, rate: int) -> float:
    """Time until the signal first comes within 35 dB of its own level."""
    step = 0.005
    loud = levels_db(signal, rate, step) > level_db(signal) + SILENCE_DB
    return float(np.argmax(loud)) * step if loud.any() else len(signal) / rate


def pitch_track(signal: Signal, rate: int, step_seconds: float = 0.01) -> NDArray[np.float64]:
    """F0 in Hz for each step, 0 where there is none: the highest peak of the normalised autocorrelation."""
    window, step = int(0.045 * rate), int(step_seconds * rate)
    count = max(0, (len(signal) - window) // step + 1)
    if count == 0:
        return np.zeros(0)
    index = np.arange(window)[None] + step * np.arange(count)[:, None]
    frames = signal[index].astype(np.float64)
    frames -= frames.mean(1, keepdims=True)
    spectrum = np.fft.rfft(frames, 4 * window, axis=1)
    # Formants make false peaks: what is above 1 kHz is left out.
    spectrum[:, int(1000 / rate * 4 * window) :] = 0
    correlation = np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, :window]
    correlation /= np.maximum(correlation[:, :1], 1e-9)
    correlation *= window / (window - np.arange(window))
    shortest, longest = int(rate / PITCH_HIGHEST_HZ), int(rate / PITCH_LOWEST_HZ)
    part = correlation[:, shortest:longest]
    # The first peak that is nearly as high as the highest: later ones are multiples of the period.
    near = part >= 0.9 * part.max(1, keepdims=True)
    first = near.argmax(1)
    reach = 12
    lag = np.array([start + part[row, start : start + reach].argmax() for row, start in enumerate(first)])
    height = part[np.arange(count), lag]
    loud = (frames**2).mean(1) > 10 ** (-3) * (signal.astype(np.float64) ** 2).mean()
    return np.where((height > PERIODIC) & loud, rate / (lag + shortest), 0)


def pitch_range_semitones(signal: Signal, rate: int) -> float:
    """Between the 5th and the 95th percentile of F0."""
    track = pitch_track(signal, rate)
    voiced = track[track > 0]
    if len(voiced) < 10:
        return 0.0
    low, high = np.percentile(voiced, [5, 95])
    return float(12 * np.log2(high / low))
