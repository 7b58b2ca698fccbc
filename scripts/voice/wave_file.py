"""Reading and writing 16-bit mono WAVE files."""

import wave
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def write_wave(path: Path, samples: NDArray[np.floating], rate: int) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((np.clip(samples, -1, 1) * 32767).round().astype("<i2").tobytes())


def read_wave(path: Path) -> tuple[NDArray[np.float32], int]:
    with wave.open(str(path), "rb") as file:
        assert file.getnchannels() == 1 and file.getsampwidth() == 2, f"{path} is not 16-bit mono"
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        return samples.astype(np.float32) / 32768, file.getframerate()
