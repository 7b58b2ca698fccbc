"""The fine structure that the frame net's envelopes lack, and the matrix that gives it back.

The net draws cepstra from 9 on with less deviation than the person has in voiced rows: as far as a net knows a mean, it keeps to it. So
each of them grows, by a power of what it lacks. Powers and bounds were chosen by the yardstick (README.md). Only what is slow grows, in
the engine: the net's quick changes are not those of the person. Voiceless rows stay as they are: fricatives would become ragged.
"""

import numpy as np
from numpy.typing import NDArray

from batches import VOICING
from dataset import Example
from model import BANDS, PITCH_VALUES

# From which cepstrum on, the power of what it lacks, and the largest gain. A higher power from 25 to 45 sounds noisy to the net for telephone lines.
GAINS = ((9, 3.0, 5.0), (25, 1.75, 2.5), (46, 3.0, 5.0))
MOST_LACK = 3.0
LOUD = 4.0  # nepers below the loud rows: what is softer is silence
SHARPEN_ROWS, SHARPEN_SHARE, BAND_MAX = 4, 0.4, -0.5  # of segment.ts

Floats = NDArray[np.float32]
WAVES = np.cos(np.outer(np.linspace(0, np.pi, BANDS), np.arange(BANDS)))
TO_CEPSTRA = np.linalg.inv(WAVES)


def sharpened(voicing: Floats, bands: Floats, lack: Floats | float = 0.0) -> Floats:
    """As segment.ts does it."""
    padded = np.pad(np.column_stack([bands, lack + np.zeros_like(bands)]), ((SHARPEN_ROWS, SHARPEN_ROWS), (0, 0)), mode="edge")
    span = 2 * SHARPEN_ROWS + 1
    mean, mean_lack = np.split(sum(padded[at : at + len(bands)] for at in range(span)) / span, 2, 1)
    before, after = (padded[SHARPEN_ROWS + step :][: len(bands), :BANDS] for step in (-1, 1))
    voiced = voicing[:, None]
    steady = bands + voiced * (before + after - 2 * bands) / 4
    values = steady + voiced * mean_lack
    return np.minimum(values + SHARPEN_SHARE * (steady - mean), np.maximum(values, BAND_MAX))


def deviations(examples: list[Example], envelopes: list[Floats]) -> NDArray[np.float64]:
    """Of each cepstrum, in loud voiced rows."""
    chosen = []
    for example, bands in zip(examples, envelopes):
        level = bands.mean(1)
        chosen.append(bands[(level > np.percentile(level, 95) - LOUD) & (example.rows[:, VOICING] > 0.5)])
    return (np.concatenate(chosen) @ TO_CEPSTRA.T).std(0)


def fine_filter(examples: list[Example], predicted: list[Floats]) -> Floats:
    """[80, 80]: bands [rows, 80] times it are what they lack if voiced. `predicted`: the net's envelopes of these examples."""
    hers = deviations(examples, [example.rows[:, PITCH_VALUES:] for example in examples])
    lack = hers / deviations(examples, [sharpened(np.zeros(len(bands), np.float32), bands) for bands in predicted])
    gain = np.ones(BANDS)
    for first, power, most in GAINS:
        gain[first:] = np.minimum(np.clip(lack[first:], 1, MOST_LACK) ** power, most)
    return ((WAVES * (gain - 1)) @ TO_CEPSTRA).T.astype(np.float32)
