"""F0 and formants by praat, many files in one run."""

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
# Window of 25 ms, pre-emphasis from 50 Hz.
FORMANT = "To Formant (burg): 0.005, 5, {ceiling}, 0.025, 50"


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


def formant_tracks(waves: list[Path], ceiling_hz: float = 5250) -> list[Floats]:
    """[rows, 3]: F1 to F3 in Hz, 0 where praat finds none."""
    tracks = []
    with tempfile.TemporaryDirectory() as folder:
        script = []
        for number, wave in enumerate(waves):
            script += [f"Read from file: \"{wave.resolve()}\"", FORMANT.format(ceiling=ceiling_hz)]
            script += ['Down to Table: "no", "no", 6, "no", 1, "no", 1, "no"']
            script += [f'Save as comma-separated file: "{folder}/{number}.csv"', 'select all', "Remove"]
        run(script)
        for number, wave in enumerate(waves):
            lines = Path(folder, f"{number}.csv").read_text(encoding="utf-8").splitlines()
            columns = [place for place, name in enumerate(lines[0].split(",")) if name in ("F1(Hz)", "F2(Hz)", "F3(Hz)")]
            values = np.zeros((len(lines) - 1, 3))
            for row, line in enumerate(lines[1:]):
                cells = line.split(",")
                for target, place in enumerate(columns):
                    values[row, target] = float(cells[place]) if cells[place][:1].isdigit() else 0.0
            samples = len(read_wave(wave)[0])
            tracks.append(np.stack([on_rows(values[:, place], samples) for place in range(3)], 1))
    return tracks
