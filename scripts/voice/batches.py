"""Training batches of the acoustic model: examples of like length, padded, with their melodies bent now and then."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dataset import FRAME_ROWS, SPEAKERS, STYLES, TUNE_ROWS, Example
from model import BANDS, PITCH_VALUES, POSITIONS
from phonemes import PAUSE, PHONE, STRESS, TERMINAL, PhoneSet

ROW_VALUES = PITCH_VALUES + BANDS
LOG_F0, VOICING = 0, 1  # places in a row
BATCH_FRAMES = 3600
LENGTH_JITTER_FRAMES = 40  # so that a batch's company changes
PERSON_SHARE = 0.65  # of an epoch's examples, when other speakers are there

BENT_SHARE = 1 / 3  # of the person's examples
LEAST_BEND, MOST_BEND = -0.25, 0.45  # of ln F0 at a clause's end
BENT_STYLE_MAX = 4.0
CUT_PAUSE_SHARE = 0.5
FIRST_PAUSE_FRAMES, LAST_PAUSE_FRAMES = (2, 5), (4, 8)  # what the service leaves of an utterance's outer pauses


@dataclass
class Statistics:
    """What standardised rows mean, the deviation of each style value, and the phones that are vowels."""

    mean: NDArray[np.float32]
    deviation: NDArray[np.float32]
    style_deviation: NDArray[np.float32]  # [terminal class, value]
    vowels: NDArray[np.int64]


@dataclass
class Batch:
    ids: Tensor  # [B, L, 4]
    place: Tensor  # [B, L, 2]
    style: Tensor  # [B, L, 4]
    log_durations: Tensor  # [B, L]
    phone_mask: Tensor  # [B, L, 1]
    index: Tensor  # [B, T]
    position: Tensor  # [B, T, 4]
    frame_mask: Tensor  # [B, T, 1]
    rows: Tensor  # [B, 2T, 82], standardised
    row_mask: Tensor  # [B, 2T]
    consonants: Tensor  # [B, 2T]: 1 in them
    speaker: Tensor  # [B, S]
    own: Tensor  # [B]: 1 for the person's examples


def measure(examples: list[Example], terminals: list[dict], phones: PhoneSet) -> Statistics:
    rows = np.concatenate([example.rows for example in examples if example.speaker == 0])
    mean, deviation = rows.mean(0), rows.std(0) + 1e-3
    mean[VOICING], deviation[VOICING] = 0, 1  # a probability, trained as one
    vowels = np.array([number for number, name in enumerate(phones.names) if name in phones.vowels])
    style_deviation = np.array([one["deviation"] for one in terminals], np.float32)
    return Statistics(mean.astype(np.float32), deviation.astype(np.float32), style_deviation, vowels)


def frame_positions(durations: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Each frame's phone, and where in the phone it is: [T] and [T, 4]."""
    index = np.repeat(np.arange(len(durations)), durations)
    within = np.arange(len(index)) - (np.cumsum(durations) - durations)[index]
    length = durations[index]
    left = length - 1 - within
    position = [(within + 0.5) / length, np.minimum(within, 20) / 20, np.minimum(left, 20) / 20, np.log(length) / 3]
    return index, np.stack(position, 1).astype(np.float32)


def melody(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Mean and spread of ln F0, and tune, of a clause's rows; the pace does not show in them."""
    voiced = rows[rows[:, VOICING] > 0.5, LOG_F0]
    return np.array([voiced.mean(), voiced.std(), 0, voiced[-TUNE_ROWS:].mean() - voiced.mean()], np.float32)


def nucleus(is_vowel: NDArray[np.bool_], stress: NDArray[np.int64]) -> int:
    """A clause's last stressed vowel; its last vowel if none is stressed; -1 without a vowel."""
    vowels = np.flatnonzero(is_vowel)
    return next((place for place in reversed(vowels) if stress[place]), vowels[-1] if len(vowels) else -1)


def bend(example: Example, statistics: Statistics, rng: random.Random) -> Example:
    """Bends F0 from each clause's nuclear vowel to its end, and changes the style to match.

    The recordings hardly hold a question. So the net learns to follow `tune` further than the person goes.
    """
    ids, rows, style = example.ids, example.rows.copy(), example.style.copy()
    starts = FRAME_ROWS * np.concatenate([[0], np.cumsum(example.durations)])
    is_vowel = np.isin(ids[PHONE], statistics.vowels)
    for first, end in example.clauses:
        place = nucleus(is_vowel[first:end], ids[STRESS, first:end])
        begin, stop = starts[first], starts[end]
        voiced = np.flatnonzero(rows[begin:stop, VOICING] > 0.5)
        if place < 0 or len(voiced) < 2 * TUNE_ROWS:
            continue
        before = melody(rows[begin:stop])
        amount = rng.uniform(LEAST_BEND, MOST_BEND)
        turn = starts[first + place]
        full = max(turn + TUNE_ROWS, begin + voiced[-1] - TUNE_ROWS // 2)  # all of it just before the last sound
        progress = np.clip((np.arange(turn, stop) - turn) / (full - turn), 0, 1)
        rows[turn:stop, LOG_F0] += amount * progress * progress * (3 - 2 * progress)
        following = starts[end + 1] if end + 1 < len(starts) else stop  # back again during the pause
        rows[stop:following, LOG_F0] += amount * np.linspace(1, 0, following - stop)
        change = (melody(rows[begin:stop]) - before) / statistics.style_deviation[ids[TERMINAL, first]]
        style[:, first:end] = np.clip(style[:, first:end] + change[:, None], -BENT_STYLE_MAX, BENT_STYLE_MAX)
    return replace(example, rows=rows, style=style)


def cut_pauses(example: Example, rng: random.Random) -> Example:
    """Shortens the outer pauses to what the service leaves of them."""
    durations = example.durations.copy()
    durations[0] = min(durations[0], rng.randint(*FIRST_PAUSE_FRAMES))
    durations[-1] = min(durations[-1], rng.randint(*LAST_PAUSE_FRAMES))
    first, last = (FRAME_ROWS * (example.durations[end] - durations[end]) for end in (0, -1))
    return replace(example, durations=durations, rows=example.rows[first : len(example.rows) - last])


def vary(example: Example, statistics: Statistics, rng: random.Random) -> Example:
    if example.speaker == 0 and rng.random() < BENT_SHARE:
        example = bend(example, statistics, rng)
    pauses = example.ids[PHONE, 0] == PAUSE == example.ids[PHONE, -1]
    return cut_pauses(example, rng) if pauses and rng.random() < CUT_PAUSE_SHARE else example


def collate(examples: list[Example], statistics: Statistics) -> Batch:
    count = len(examples)
    phones = max(example.ids.shape[1] for example in examples)
    frames = max(int(example.durations.sum()) for example in examples)
    ids = np.zeros((count, phones, 4), np.int64)
    place = np.zeros((count, phones, 2), np.float32)
    style = np.zeros((count, phones, len(STYLES)), np.float32)
    log_durations = np.zeros((count, phones), np.float32)
    phone_mask = np.zeros((count, phones, 1), np.float32)
    index = np.zeros((count, frames), np.int64)
    position = np.zeros((count, frames, POSITIONS), np.float32)
    frame_mask = np.zeros((count, frames, 1), np.float32)
    rows = np.zeros((count, FRAME_ROWS * frames, ROW_VALUES), np.float32)
    row_mask = np.zeros((count, FRAME_ROWS * frames), np.float32)
    consonants = np.zeros((count, FRAME_ROWS * frames), np.float32)
    for row, example in enumerate(examples):
        length, duration = example.ids.shape[1], int(example.durations.sum())
        ids[row, :length] = example.ids.T
        place[row, :length] = example.place.T
        style[row, :length] = example.style.T
        log_durations[row, :length] = np.log(example.durations)
        phone_mask[row, :length] = 1
        index[row, :duration], position[row, :duration] = frame_positions(example.durations)
        frame_mask[row, :duration] = 1
        rows[row, : FRAME_ROWS * duration] = (example.rows - statistics.mean) / statistics.deviation
        row_mask[row, : FRAME_ROWS * duration] = 1
        is_consonant = ~np.isin(example.ids[PHONE], [PAUSE, *statistics.vowels])
        consonants[row, : FRAME_ROWS * duration] = np.repeat(is_consonant, FRAME_ROWS * example.durations)
    speaker = np.eye(len(SPEAKERS), dtype=np.float32)[[example.speaker for example in examples]]
    phone_arrays = (ids, place, style, log_durations, phone_mask)
    frame_arrays = (index, position, frame_mask, rows, row_mask, consonants, speaker, speaker[:, 0].copy())
    return Batch(*(torch.from_numpy(array) for array in (*phone_arrays, *frame_arrays)))


def length_groups(examples: list[Example], rng: random.Random, frames: int = BATCH_FRAMES) -> list[list[Example]]:
    """Examples of nearly equal length together (padding costs as much as speech), in random order."""
    keyed = [(len(example.rows) // FRAME_ROWS + rng.random() * LENGTH_JITTER_FRAMES, place) for place, example in enumerate(examples)]
    groups: list[list[Example]] = [[]]
    for _, place in sorted(keyed):
        if groups[-1] and (len(groups[-1]) + 1) * len(examples[place].rows) // FRAME_ROWS > frames:
            groups.append([])
        groups[-1].append(examples[place])
    rng.shuffle(groups)
    return groups


def training_batches(examples: list[Example], statistics: Statistics, rng: random.Random) -> Iterator[Batch]:
    """Without end. Each epoch has all of the person's examples, and as many of the others' as their share allows."""
    own = [example for example in examples if example.speaker == 0]
    others = [example for example in examples if example.speaker != 0]
    count = min(len(others), round(len(own) * (1 / PERSON_SHARE - 1)))
    while True:
        for group in length_groups(own + rng.sample(others, count), rng):
            yield collate([vary(example, statistics, rng) for example in group], statistics)
