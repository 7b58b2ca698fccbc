"""F0 by praat, many files in one run."""

import subprocess
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from measures import ROW, SAMPLE_RATE
from wave_file import read_wave

Floats = NDArray[np.float64]
STEP_SECONDS = 0.005
# Time step, then floor, candidates, accuracy, and the thresholds for silence, voicing, octaves and jumps, then ceiling.
PITCH = 'To Pitch (ac): 0.005, {floor}, 15, "no", 0.03, 0.45, 0.015, 0.45, 0.16, {ceiling}'


def run(script: list[str]) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".praat") as file:
        file.write("\n".join(script) + "\n")
        file.flush()
        subprocess.run(["praat", "--run", file.name], check=True, capture_output=True)


def on_rows(values: Floats, samples: int) -> Floats:
    """Praat centres its frames within the file: the frame nearest to each row of 5 ms, 0 where there is none."""
    rows = samples // ROW
    if not len(values):
        return np.zeros(rows)
    first = (samples / SAMPLE_RATE - (len(values) - 1) * STEP_SECONDS) / 2
    # One shift for all rows: rounded one by one, those in the middle between two frames would jump.
    places = np.arange(rows) + int(np.floor((ROW / 2 / SAMPLE_RATE - first) / STEP_SECONDS + 0.5))
    inside = (places >= 0) & (places < len(values))
    return np.where(inside, values[np.clip(places, 0, len(values) - 1)], 0.0)


def pitch_tracks(waves: list[Path], floor_hz: float = 55, ceiling_hz: float = 420) -> list[Floats]:
    """F0 in Hz for each row of 5 ms, 0 where there is none."""
    tracks = []
    with tempfile.TemporaryDirectory() as folder:
        script = []
        for number, wave in enumerate(waves):
            script += [f"Read from file: \"{wave.resolve()}\"", PITCH.format(floor=floor_hz, ceiling=ceiling_hz), "To Matrix"]
            script += [f'Save as headerless spreadsheet file: "{folder}/{number}.txt"', 'select all', "Remove"]
        run(script)
        for number, wave in enumerate(waves):
            samples = len(read_wave(wave)[0])
            tracks.append(on_rows(np.loadtxt(f"{folder}/{number}.txt", ndmin=1).astype(np.float64), samples))
    return tracks
