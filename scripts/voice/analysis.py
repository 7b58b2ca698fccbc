"""Waves to rows: F0 by praat, and a smooth spectral envelope as 80 log bands.

Row r is centred on sample 120 r + 60. A band is the natural logarithm of an amplitude: white noise of deviation d gives
ln(d) in all bands, and so does a train of pulses of the same power. The bands are triangles on the mel-like axis of an
all-pass filter, evenly spaced from 0 to 12 kHz, both included.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import ctypes
import math
import multiprocessing
import subprocess
from pathlib import Path

import numpy as np
import scipy.fft
import soundfile
from numpy.typing import NDArray

from recordings import SAMPLE_RATE, WORK, texts

ROW = 120
BANDS = 80
ALL_PASS = 0.466
TRANSFORM = 2048
BINS = TRANSFORM // 2 + 1
BIN_HZ = SAMPLE_RATE / TRANSFORM
UNVOICED_HZ = 300.0  # unvoiced rows get the window of this F0: 10 ms
SPECTRAL_RECOVERY = 0.09  # how much the smoothing of the envelope is undone
POWER_FLOOR = 1e-11
SLIP_OCTAVES = 0.75  # F0 further than this from its surroundings is an octave error
SLIP_ROWS = 30

Floats = NDArray[np.float64]

# Time step, floor, candidates, accuracy, silence, voicing, octave cost, octave jump, voiced/unvoiced, ceiling.
PRAAT_SCRIPT = """form Pitch of many waves
  text listFile
  text wavFolder
  text pitchFolder
  real floor
  real ceiling
endform
list = Read Strings from raw text file: listFile$
count = Get number of strings
for i to count
  selectObject: list
  name$ = Get string: i
  sound = Read from file: wavFolder$ + "/" + name$ + ".wav"
  pitch = To Pitch (ac): 0.005, floor, 15, "no", 0.03, 0.45, 0.015, 0.45, 0.16, ceiling
  matrix = To Matrix
  Save as headerless spreadsheet file: pitchFolder$ + "/" + name$ + ".txt"
  removeObject: sound, pitch, matrix
endfor
"""


def warp(radians: Floats) -> Floats:
    """Frequency on the axis of the all-pass filter."""
    return radians + 2 * np.arctan2(ALL_PASS * np.sin(radians), 1 - ALL_PASS * np.cos(radians))


def band_weights() -> Floats:
    """[BINS, BANDS]; each column sums to 1."""
    position = warp(np.linspace(0, np.pi, BINS))[:, None] * (BANDS - 1) / np.pi
    triangles = np.maximum(0, 1 - np.abs(position - np.arange(BANDS)))
    return triangles / triangles.sum(0)


def band_centres_hz() -> Floats:
    axis = np.linspace(0, np.pi, 8192)
    return np.interp(np.linspace(0, np.pi, BANDS), warp(axis), axis) * SAMPLE_RATE / (2 * np.pi)


def run_praat(names: list[str], work: Path, label: str, pitch_range: tuple[int, int]) -> None:
    """Writes the F0 of each wave to work/pitch."""
    folder = work / "pitch"
    folder.mkdir(exist_ok=True)
    script, listing = folder / f"{label}.praat", folder / f"{label}.names"
    script.write_text(PRAAT_SCRIPT)
    listing.write_text("\n".join(names) + "\n")
    arguments = [listing.resolve(), (work / "wav").resolve(), folder.resolve(), *map(str, pitch_range)]
    subprocess.run(["praat", "--run", script.resolve(), *arguments], check=True)


def read_pitch(path: Path, rows: int) -> Floats:
    """F0 in Hz of each row, 0 where it is unvoiced."""
    values = np.loadtxt(path, ndmin=1)
    # praat centres its frames in the wave: on our rows, or between two. A mean of two would flatten the movement of F0, but one
    # shift of the whole by half a row does not.
    shift = math.ceil((rows - len(values)) / 2)
    pitch = np.zeros(rows)
    pitch[shift : shift + len(values)] = values
    return undo_octave_slips(pitch)


def undo_octave_slips(pitch: Floats) -> Floats:
    voiced = np.flatnonzero(pitch > 0)
    if len(voiced) <= 20:
        return pitch
    octaves = np.log2(pitch[voiced])
    around = np.array([np.median(octaves[max(0, i - SLIP_ROWS) : i + SLIP_ROWS + 1]) for i in range(len(octaves))])
    slip = np.where(np.abs(octaves - around) > SLIP_OCTAVES, np.sign(octaves - around), 0)
    result = pitch.copy()
    result[voiced] = 2 ** (octaves - slip)
    return result


def power_spectra(padded: Floats, rows: NDArray[np.int64], pitch: Floats, half: int) -> Floats:
    """Power of each row in a Hann window of three periods and unit energy. `padded` begins `half` samples early."""
    offset = np.arange(-half, half + 1)
    turns = offset * pitch[:, None] / (3 * SAMPLE_RATE)
    window = np.where(np.abs(turns) < 0.5, 0.5 + 0.5 * np.cos(2 * np.pi * turns), 0)
    window /= np.sqrt((window**2).sum(1, keepdims=True))
    frames = padded[(rows * ROW + ROW // 2 + half)[:, None] + offset] * window
    frames -= window * (frames.sum(1, keepdims=True) / window.sum(1, keepdims=True))
    return np.abs(scipy.fft.rfft(frames, TRANSFORM, axis=1)) ** 2


def smooth_spectra(power: Floats, pitch: Floats) -> Floats:
    """Log power without the harmonics: the idea of CheapTrick (M. Morise, 2015)."""
    bins = np.arange(BINS)
    spacing = pitch[:, None] / BIN_HZ
    # Below F0 there is half of the first harmonic only: its mirror image stands in for the rest.
    mirrored = np.clip(np.round(spacing - bins), 0, BINS - 1).astype(np.int64)
    power = power + np.where(bins < spacing, np.take_along_axis(power, mirrored, 1), 0)
    # A moving mean as wide as two thirds of F0, by differences of the running sum.
    edge = 64
    wide = np.concatenate([power[:, edge:0:-1], power, power[:, -2 : -edge - 2 : -1]], 1)
    total = np.cumsum(wide, 1)
    width = 2 / 3 * spacing

    def sum_until(place: Floats) -> Floats:
        whole = np.floor(place).astype(np.int64)
        share = place - whole
        return np.take_along_axis(total, whole, 1) * (1 - share) + np.take_along_axis(total, whole + 1, 1) * share

    middle = bins + edge - 0.5
    smooth = (sum_until(middle + width / 2) - sum_until(middle - width / 2)) / width
    log_power = np.log(np.maximum(smooth, 0) + POWER_FLOOR)
    # Liftering removes what is left of the harmonics, and sharpens again what the mean has blurred.
    quefrency = bins / SAMPLE_RATE
    lifter = np.sinc(pitch[:, None] * quefrency)
    lifter *= 1 + 2 * SPECTRAL_RECOVERY * (1 - np.cos(2 * np.pi * pitch[:, None] * quefrency))
    cepstrum = scipy.fft.irfft(log_power, axis=1)[:, :BINS] * lifter
    cepstrum[:, 1:-1] *= 2
    return scipy.fft.rfft(np.pad(cepstrum, ((0, 0), (0, TRANSFORM - BINS))), axis=1).real


def envelope_bands(samples: Floats, f0: Floats, lowest_hz: float) -> NDArray[np.float32]:
    """[rows, BANDS]."""
    weights = band_weights()
    half = int(1.5 * SAMPLE_RATE / lowest_hz) + 1
    padded = np.concatenate([np.zeros(half), samples, np.zeros(half + ROW)])
    result = np.empty((len(f0), BANDS), np.float32)
    for start in range(0, len(f0), 96):
        rows = np.arange(start, min(len(f0), start + 96))
        pitch = np.where(f0[rows] > 0, np.maximum(f0[rows], lowest_hz), UNVOICED_HZ)
        log_power = smooth_spectra(power_spectra(padded, rows, pitch, half), pitch)
        result[rows] = 0.5 * np.log(np.exp(log_power) @ weights)
    return result


def analyse(task: tuple[Path, str, float]) -> int:
    """Writes the features of one wave; returns its rows."""
    work, name, lowest_hz = task
    samples, _ = soundfile.read(work / "wav" / f"{name}.wav")
    rows = len(samples) // ROW
    f0 = read_pitch(work / "pitch" / f"{name}.txt", rows)
    bands = envelope_bands(samples, f0, lowest_hz)
    unfinished = work / "features" / f"{name}.part"
    with open(unfinished, "wb") as file:
        np.savez(file, f0=f0.astype(np.float32), bands=bands.astype(np.float16))
    unfinished.replace(work / "features" / f"{name}.npz")
    return rows


def analyse_part(task: tuple[Path, list[str], str, tuple[int, int]]) -> int:
    work, names, label, pitch_range = task
    # Keep freed memory: the system would clear it again for each array.
    library = ctypes.CDLL(None)
    library.mallopt(-4, 0)
    library.mallopt(-1, 2**31 - 1)
    run_praat(names, work, label, pitch_range)
    return sum(analyse((work, name, float(pitch_range[0]))) for name in names)


def analyse_waves(names: list[str], label: str, pitch_range: tuple[int, int], work: Path = WORK, processes: int = 2) -> None:
    """Features of these waves, but of those that have them. @param pitch_range the lowest and the highest F0 in Hz"""
    (work / "features").mkdir(exist_ok=True)
    names = [name for name in names if not (work / "features" / f"{name}.npz").exists()]
    tasks = [(work, names[part::processes], f"{label}{part}", pitch_range) for part in range(processes)]
    with multiprocessing.Pool(processes) as pool:
        rows = sum(pool.imap(analyse_part, tasks))
    print(f"{label}: {rows} rows, {rows * ROW / SAMPLE_RATE / 60:.1f} minutes", flush=True)


def load_features(name: str, work: Path = WORK) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """F0 [rows] and bands [rows, BANDS]."""
    with np.load(work / "features" / f"{name}.npz") as file:
        return file["f0"], file["bands"].astype(np.float32)


if __name__ == "__main__":
    analyse_waves(list(texts()), "person", (90, 420))
