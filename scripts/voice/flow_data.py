"""Training examples of several people for flow.py, and their batches."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from analysis import band_centres_hz
from batches import LOG_F0, VOICING, Statistics, bend, cut_pauses, frame_positions, length_groups
from dataset import FRAME_ROWS, Example, read_examples, set_styles, style_statistics, usual_durations
from flow import COLOURS, FLAGS, FRAME_PITCH, LANGUAGES, SYMBOLS_MAX, Cepstra, Said
from model import BANDS, PITCH_VALUES, PLACES, POSITIONS
from people import PEOPLE, folder_of
from phonemes import PAUSE, PHONE, STRESS, TERMINAL, WORD_START, phone_set
from recordings import WORK, held_out, tuning
from sounds import ENGLISH, FEATURES, features_of

FIRST_PERSON = "en-f"  # whose recordings are in work/ itself
IDS = (FIRST_PERSON, *PEOPLE)  # in the order of the embeddings: append only
LOG_F0_MEAN, LOG_F0_DEVIATION = 5.0, 0.35
LONGEST_FRAMES = 1100
BATCH_FRAMES = 1800
PIECE_FRAMES = 700  # longer recordings are cut at pauses
SHORTEST_FRAMES = 40
BENT_SHARE, CUT_PAUSE_SHARE = 0.25, 0.5
COLOURLESS_SHARE = 0.3  # of the batches: a voice's usual colour is 0
SMOOTH_ROWS = 5  # 25 ms: what is quicker in a voiced row is jitter of the analysis

Floats = NDArray[np.float32]


@dataclass
class Person:
    """One person's recordings."""

    number: int
    id: str
    language: int
    training: list[Example]
    tuning: list[Example]
    statistics: Statistics
    styles: list[dict]  # of dataset.style_statistics
    sounds: Floats  # [phones, FEATURES]
    symbols: NDArray[np.int64]  # [phones]
    highest_hz: int


@dataclass
class FlowBatch:
    said: Said
    log_durations: Tensor  # [B, L]
    pitch: Tensor  # [B, T, 4], standardised
    frames: Tensor  # [B, T, 80], standardised
    known: Tensor  # [B, 1, 80]: 1 where the recording has the band


def pieces(example: Example) -> list[Example]:
    """A long recording, cut in the middle of pauses."""
    total = int(example.durations.sum())
    if total <= PIECE_FRAMES:
        return [example]
    result: list[Example] = []
    starts = np.concatenate([[0], np.cumsum(example.durations)])
    pauses = [at for at in range(1, len(example.durations) - 1) if example.ids[PHONE, at] == PAUSE and example.durations[at] >= 12]
    first = 0  # its pause, of which the second half is left
    while first < len(example.durations) - 1:
        begin = starts[first] + (example.durations[first] // 2 if first else 0)
        ends = [at for at in pauses if at > first] + [len(example.durations) - 1]
        fitting = [at for at in ends if starts[at] - begin <= PIECE_FRAMES]
        last = fitting[-1] if fitting else ends[0]
        final = last == len(example.durations) - 1
        stop = starts[-1] if final else starts[last] + example.durations[last] // 2
        part = slice(first, last + 1)
        durations = example.durations[part].copy()
        durations[0] -= begin - starts[first]
        if not final:
            durations[-1] = example.durations[last] // 2
        clauses = [(a - first, b - first) for a, b in example.clauses if first <= a and b <= last + 1]
        rows = example.rows[FRAME_ROWS * begin : FRAME_ROWS * stop]
        result.append(replace(example, ids=example.ids[:, part], place=example.place[:, part], style=example.style[:, part],
                              durations=durations, rows=rows, clauses=clauses))  # fmt: skip
        first = last
    return [one for one in result if one.durations.min() >= 1 and SHORTEST_FRAMES <= one.durations.sum() < LONGEST_FRAMES]


def spoken_symbol(name: str, is_english: bool) -> str:
    return ENGLISH.get(name, name) if is_english else name


def frame_envelopes(rows: Floats) -> Floats:
    """[2T, 82] standardised -> [T, 80]: voiced rows smoothed by a Hann window, then the mean of each frame's two."""
    bands, reach = rows[:, PITCH_VALUES:], SMOOTH_ROWS // 2
    window = np.hanning(SMOOTH_ROWS + 2)[1:-1].astype(np.float32)
    padded = np.pad(bands, ((reach, reach), (0, 0)), mode="edge")
    smooth = sum(weight * padded[at : at + len(bands)] for at, weight in enumerate(window / window.sum()))
    steady = np.where(rows[:, VOICING, None] > 0, smooth, bands)
    return steady.reshape(-1, FRAME_ROWS, BANDS).mean(1)


def band_mask(highest_hz: float) -> Floats:
    """[80]"""
    return (band_centres_hz() <= highest_hz).astype(np.float32)


def loud_mean(rows: Floats, statistics: Statistics) -> Floats:
    """Mean of the louder half of the rows, standardised."""
    bands = (rows[:, PITCH_VALUES:].astype(np.float32) - statistics.mean[PITCH_VALUES:]) / statistics.deviation[PITCH_VALUES:]
    level = bands.mean(1)
    return bands[level > np.median(level)].mean(0)


def colour_basis(person: Person) -> tuple[Floats, Floats]:
    """Usual mean of the loud rows, and directions [COLOURS, 80] along which recordings differ, with values of deviation 1."""
    means = np.array([loud_mean(one.rows, person.statistics) for one in person.training])
    centre = means.mean(0)
    _, sizes, directions = np.linalg.svd(means - centre, full_matrices=False)
    return centre, (directions[:COLOURS] / (sizes[:COLOURS, None] / np.sqrt(len(means)))).astype(np.float32)


class Data:
    def __init__(self, ids: list[str], work: Path = WORK) -> None:
        self.symbols: dict[str, int] = {}
        self.people: list[Person] = []
        self.mean = self.deviation = np.zeros(0, np.float32)
        self.cepstra = torch.ones(0)  # deviations
        for id in ids:
            self.people.append(self.read(id, work if id == FIRST_PERSON else folder_of(PEOPLE[id], work)))
        self.colours = {person.number: colour_basis(person) for person in self.people}
        self.persons = {person.number: person for person in self.people}

    def read(self, id: str, work: Path) -> Person:
        number = IDS.index(id)
        kept = set(tuning(work)) - set(held_out(work))
        examples = read_examples(work, lambda name: number, set(held_out(work)), work)
        for example in examples:
            example.rows = example.rows.astype(np.float16)
        chosen = [one for one in examples if one.name in kept]
        unseen = {one.text for one in chosen}
        whole = [one for one in examples if not one.held_out and one.text not in unseen]
        usual = usual_durations(whole)
        styles = style_statistics(whole, usual)
        set_styles(examples, styles, usual)
        training = [piece for one in whole for piece in pieces(one)]
        if not len(self.mean):
            rows = np.concatenate([one.rows for one in training]).astype(np.float32)
            self.mean, self.deviation = rows.mean(0), rows.std(0) + 1e-3
            self.mean[LOG_F0], self.deviation[LOG_F0] = LOG_F0_MEAN, LOG_F0_DEVIATION
            self.mean[VOICING], self.deviation[VOICING] = 0.5, 0.5
            frames = [frame_envelopes((one.rows.astype(np.float32) - self.mean) / self.deviation) for one in training]
            self.cepstra = Cepstra()(torch.from_numpy(np.concatenate(frames))).std(0)
        phones = phone_set(work)
        person = PEOPLE.get(id)
        is_english = person is None or person.language is None
        vowels = np.array([place for place, name in enumerate(phones.names) if name in phones.vowels])
        style_deviation = np.array([one["deviation"] for one in styles], np.float32)
        symbols = [self.symbols.setdefault(spoken_symbol(name, is_english), len(self.symbols)) for name in phones.names]
        assert len(self.symbols) <= SYMBOLS_MAX, "more symbols than embeddings"
        return Person(
            number, id, LANGUAGES.index("en" if is_english else person.language), training, [p for one in chosen for p in pieces(one)],
            Statistics(self.mean, self.deviation, style_deviation, vowels), styles,
            np.array([features_of(name, is_english) for name in phones.names]), np.array(symbols), person.highest_hz if person else 12000,
        )  # fmt: skip

    def colour(self, example: Example) -> Floats:
        centre, basis = self.colours[example.speaker]
        person = self.persons[example.speaker]
        return np.clip(basis @ (loud_mean(example.rows, person.statistics) - centre), -3, 3).astype(np.float32)

    def varied(self, example: Example, rng: random.Random) -> Example:
        statistics = self.persons[example.speaker].statistics
        example = replace(example, rows=example.rows.astype(np.float32))
        if rng.random() < BENT_SHARE:
            example = bend(example, statistics, rng)
        outer = example.ids[PHONE, 0] == PAUSE == example.ids[PHONE, -1] and example.durations[0] > 5 and example.durations[-1] > 8
        return cut_pauses(example, rng) if outer and rng.random() < CUT_PAUSE_SHARE else example

    def batches(self, rng: random.Random) -> Iterator[FlowBatch]:
        """Without end; an epoch has all examples."""
        everything = [one for person in self.people for one in person.training]
        while True:
            for group in length_groups(everything, rng, BATCH_FRAMES):
                colours = [self.colour(one) for one in group]
                if rng.random() < COLOURLESS_SHARE:
                    colours = [np.zeros(COLOURS, np.float32)] * len(group)
                yield self.collate([self.varied(one, rng) for one in group], colours)

    def collate(self, examples: list[Example], colours: list[Floats] | None = None) -> FlowBatch:
        count = len(examples)
        phones = max(example.ids.shape[1] for example in examples)
        frames = max(int(example.durations.sum()) for example in examples)
        sounds = np.zeros((count, phones, FEATURES), np.float32)
        symbols = np.zeros((count, phones), np.int64)
        flags = np.zeros((count, phones, FLAGS), np.float32)
        place = np.zeros((count, phones, PLACES), np.float32)
        style = np.zeros((count, phones, 4), np.float32)
        log_durations = np.zeros((count, phones), np.float32)
        phone_mask = np.zeros((count, phones, 1), np.float32)
        index = np.zeros((count, frames), np.int64)
        position = np.zeros((count, frames, POSITIONS), np.float32)
        mask = np.zeros((count, frames, 1), np.float32)
        pitch = np.zeros((count, frames, FRAME_PITCH), np.float32)
        values = np.zeros((count, frames, BANDS), np.float32)
        known = np.zeros((count, 1, BANDS), np.float32)
        for row, example in enumerate(examples):
            person = self.persons[example.speaker]
            length, duration = example.ids.shape[1], int(example.durations.sum())
            sounds[row, :length], symbols[row, :length] = person.sounds[example.ids[PHONE]], person.symbols[example.ids[PHONE]]
            flags[row, :length] = np.stack([example.ids[STRESS], example.ids[WORD_START], example.ids[TERMINAL] > 0], 1)
            place[row, :length], style[row, :length] = example.place.T, example.style.T
            log_durations[row, :length] = np.log(example.durations)
            phone_mask[row, :length] = mask[row, :duration] = 1
            index[row, :duration], position[row, :duration] = frame_positions(example.durations)
            rows = (example.rows.astype(np.float32) - self.mean) / self.deviation
            pitch[row, :duration] = rows[:, :PITCH_VALUES].reshape(duration, -1)
            values[row, :duration] = frame_envelopes(rows)
            known[row, 0] = band_mask(person.highest_hz)
        numbers = np.array([example.speaker for example in examples])
        languages = np.array([self.persons[number].language for number in numbers])
        colour = np.stack(colours) if colours else np.zeros((count, COLOURS), np.float32)
        said = Said(*(torch.from_numpy(value) for value in (
            sounds, symbols, flags, place, style, phone_mask, index, position, mask, numbers, languages, colour)))  # fmt: skip
        return FlowBatch(said, *(torch.from_numpy(value) for value in (log_durations, pitch, values, known)))
