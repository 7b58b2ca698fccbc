"""How different the timbres of speakers are, measured as speaker verification does.

One mixture of Gaussians describes the cepstra of all reference speakers. Its means are adapted to each speaker, and the distance of two
speakers is the distance of their means: a bound of the Kullback-Leibler divergence (Campbell, Sturim, Reynolds: Support
vector machines using GMM supervectors for speaker verification, 2006).

Each speaker's mean cepstrum is subtracted first. So a fixed filter, such as a microphone, makes no difference. F0 makes little: the
cepstra leave out the harmonics.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from measures import bands_below, is_loud, log_bands
from wave_file import read_wave

Floats = NDArray[np.float64]
LOWEST_HZ, HIGHEST_HZ = 200, 7000  # the reference recordings end at 8 kHz
LOUD_DB = 30  # rows further below the loud ones are mostly noise
CEPSTRA = 20
GAUSSIANS = 32
ROUNDS = 25
ROWS = 60_000  # that the mixture is fitted to
RELEVANCE = 16  # rows that count as much as the common mixture
LEAST_VARIANCE = 0.05  # of the variance of all rows
STARTS = 5  # mixtures with different first means: with one of them, a distance can be off by a tenth


def timbre_rows(waves: list[Path]) -> list[Floats]:
    """Cepstra of the loud rows of each wave, without their mean over all waves."""
    first, last = bands_below(LOWEST_HZ), bands_below(HIGHEST_HZ)
    places = (np.arange(last - first) + 0.5) / (last - first)
    cosines = np.cos(np.pi * np.outer(places, np.arange(1, CEPSTRA + 1))) * np.sqrt(2 / (last - first))
    rows = []
    for wave in waves:
        bands = log_bands(read_wave(wave)[0])
        rows.append(bands[is_loud(bands, LOUD_DB), first:last] @ cosines)
    mean = np.concatenate(rows).mean(0)
    return [one - mean for one in rows]


class Mixture:
    """Gaussians with diagonal covariances, fitted to the rows of all reference speakers."""

    def __init__(self, rows: Floats, seed: int) -> None:
        rng = np.random.default_rng(seed)
        rows = rows[rng.permutation(len(rows))[:ROWS]]
        self.means = rows[:GAUSSIANS].copy()
        self.variances = np.tile(rows.var(0), (GAUSSIANS, 1))
        self.weights = np.full(GAUSSIANS, 1 / GAUSSIANS)
        for _ in range(ROUNDS):
            shares = self.shares(rows)
            counts = shares.sum(0)[:, None] + 1e-6
            self.means = shares.T @ rows / counts
            self.variances = np.maximum(shares.T @ rows**2 / counts - self.means**2, LEAST_VARIANCE * rows.var(0))
            self.weights = counts[:, 0] / counts.sum()

    def shares(self, rows: Floats) -> Floats:
        """[rows, Gaussians]: how likely each row comes from each Gaussian."""
        constant = np.log(self.weights) - 0.5 * (self.means**2 / self.variances + np.log(self.variances)).sum(1)
        logs = constant - 0.5 * rows**2 @ (1 / self.variances).T + rows @ (self.means / self.variances).T
        shares = np.exp(logs - logs.max(1, keepdims=True))
        return shares / shares.sum(1, keepdims=True)

    def adapted(self, rows: Floats) -> Floats:
        """The means of the mixture, adapted to one speaker."""
        shares = self.shares(rows)
        counts = shares.sum(0)[:, None]
        trust = counts / (counts + RELEVANCE)
        return trust * (shares.T @ rows) / np.maximum(counts, 1e-6) + (1 - trust) * self.means

    def distance(self, one: Floats, other: Floats) -> float:
        """The distance of two speakers, from their adapted means."""
        return float(np.sqrt((self.weights[:, None] * (one - other) ** 2 / self.variances).sum()))


class Timbres:
    """Distances of speakers: the mean over several mixtures."""

    def __init__(self, rows: Floats) -> None:
        self.mixtures = [Mixture(rows, seed) for seed in range(STARTS)]

    def adapted(self, rows: Floats) -> list[Floats]:
        return [mixture.adapted(rows) for mixture in self.mixtures]

    def distance(self, one: list[Floats], other: list[Floats]) -> float:
        """The distance of two speakers, from what `adapted` makes of their rows."""
        return float(np.mean([mixture.distance(*pair) for mixture, *pair in zip(self.mixtures, one, other)]))
