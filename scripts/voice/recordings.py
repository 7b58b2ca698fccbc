"""The person's recordings: their texts, which of them are held out, and how they are cleaned.

`recordings.py FOLDER` cleans the FLAC files of FOLDER into work/wav: without rumble, with less of the room, at one level,
with 100 ms of quiet before the speech and 120 ms after it.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import multiprocessing
import shutil
import sys
from pathlib import Path

import numpy as np
import scipy.ndimage
import scipy.signal
import soundfile
from numpy.typing import NDArray

WORK = Path(os.environ.get("VOICE_WORK") or Path(__file__).resolve().parent / "work")
SAMPLE_RATE = 24000
FRAME = 240  # 10 ms: every wave is a whole number of them
HELD_OUT_STEP = 17
TUNING_PLACE = 8  # of every 17 sentences, the one to choose by
FAULTY = ("arctic_a0252",)  # the recording ends before its prompt does

HIGH_PASS_HZ = 65
QUIET_SHARE = 0.08  # of a recording's frames: they show the room's noise
OVER_SUBTRACTION = 1.6  # the noise of a single frame is often above its mean
GAIN_FLOOR_DB = -14  # the room goes, the breath stays
ACTIVE_BELOW_PEAK_DB = 30
ACTIVE_LEVEL_DB = -23
SPEECH_BELOW_PEAK_DB = 40
SPEECH_FRAMES_MIN = 3  # shorter sounds at an edge are clicks of the mouth
BEFORE_FRAMES, AFTER_FRAMES = 10, 12
PEAK_MAX = 0.98

Samples = NDArray[np.float64]


def metadata(work: Path = WORK) -> dict[str, str]:
    lines = (work / "metadata.csv").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("|", 1) for line in lines]
    return {name: text.strip() for name, text in sorted(pairs)}


def texts(work: Path = WORK) -> dict[str, str]:
    """What is said in each recording that can be used, by the recording's name."""
    return {name: text for name, text in metadata(work).items() if not name.startswith(FAULTY)}


def held_out(work: Path = WORK) -> list[str]:
    """The recordings that no training may use: all takes of every 17th sentence, sentence by sentence; of other people, those of a list."""
    listed = work / "held-out.txt"
    if listed.exists():
        return listed.read_text(encoding="utf-8").split()
    sentences = sorted(set(metadata(work).values()))[::HELD_OUT_STEP]
    said = texts(work)
    return [name for sentence in sentences for name, text in said.items() if text == sentence]


def tuning(work: Path = WORK) -> list[str]:
    """The recordings to choose between models by: a take of every 17th sentence. No training uses them, and neither do the final figures."""
    takes = {text: name for name, text in reversed(texts(work).items())}
    sentences = sorted(set(metadata(work).values()))[TUNING_PLACE::HELD_OUT_STEP]
    return [takes[sentence] for sentence in sentences if sentence in takes]


def frame_levels(samples: Samples) -> Samples:
    """Level of each frame in dB of full scale."""
    frames = samples[: len(samples) // FRAME * FRAME].reshape(-1, FRAME)
    return 10 * np.log10((frames**2).mean(1) + 1e-12)


def reduce_noise(samples: Samples) -> Samples:
    """Wiener filter whose noise is the mean spectrum of the quietest frames."""
    window, step = 960, 240
    _, _, spectrum = scipy.signal.stft(samples, SAMPLE_RATE, nperseg=window, noverlap=window - step)
    power = np.abs(spectrum) ** 2
    energy = power.sum(0)
    noise = power[:, energy <= np.quantile(energy, QUIET_SHARE)].mean(1, keepdims=True) + 1e-14
    square = np.full((3, 3), 1 / 9)  # smooth over time and frequency: lone bins that open and close would ring
    ratio = scipy.signal.convolve2d(power, square, mode="same") / noise
    gain = np.clip(1 - OVER_SUBTRACTION / np.maximum(ratio, 1e-9), 10 ** (GAIN_FLOOR_DB / 20), 1)
    gain = scipy.signal.convolve2d(gain, square, mode="same", boundary="symm")
    _, result = scipy.signal.istft(spectrum * gain, SAMPLE_RATE, nperseg=window, noverlap=window - step)
    return result[: len(samples)]


def set_level(samples: Samples) -> Samples:
    levels = frame_levels(samples)
    active = levels[levels > np.percentile(levels, 95) - ACTIVE_BELOW_PEAK_DB]
    gain = 10 ** ((ACTIVE_LEVEL_DB - 10 * np.log10((10 ** (active / 10)).mean())) / 20)
    return samples * min(gain, PEAK_MAX / np.abs(samples).max())


def trim(samples: Samples) -> Samples:
    levels = frame_levels(samples)
    loud = levels > np.percentile(levels, 95) - SPEECH_BELOW_PEAK_DB
    runs = scipy.ndimage.binary_opening(loud, np.ones(SPEECH_FRAMES_MIN))
    speech = np.flatnonzero(runs)
    first = max(0, speech[0] - BEFORE_FRAMES)
    last = min(len(levels), speech[-1] + 1 + AFTER_FRAMES)
    result = samples[first * FRAME : last * FRAME].copy()
    result[:FRAME] *= np.linspace(0, 1, FRAME)
    result[-FRAME:] *= np.linspace(1, 0, FRAME)
    return result


def clean(samples: Samples) -> Samples:
    high_pass = scipy.signal.butter(4, HIGH_PASS_HZ, "high", fs=SAMPLE_RATE, output="sos")
    return trim(set_level(reduce_noise(scipy.signal.sosfiltfilt(high_pass, samples))))


def clean_file(paths: tuple[Path, Path]) -> float:
    """Returns the seconds that are left."""
    samples, rate = soundfile.read(paths[0])
    assert rate == SAMPLE_RATE and samples.ndim == 1, f"{paths[0]} is not 24 kHz mono"
    cleaned = clean(samples)
    soundfile.write(paths[1], cleaned, SAMPLE_RATE, subtype="PCM_16")
    return len(cleaned) / SAMPLE_RATE


def clean_recordings(source: Path, work: Path = WORK) -> None:
    (work / "wav").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source / "metadata.csv", work / "metadata.csv")
    paths = [(source / f"{name}.flac", work / "wav" / f"{name}.wav") for name in texts(work)]
    with multiprocessing.Pool(2) as pool:
        seconds = pool.map(clean_file, paths, chunksize=20)
    print(f"{len(paths)} recordings, {sum(seconds) / 60:.1f} minutes; {len(held_out(work))} held out", flush=True)


if __name__ == "__main__":
    clean_recordings(Path(sys.argv[1]))
