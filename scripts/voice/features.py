"""What the teacher wrote, as training examples: phones in, 10 ms frames of vocoder parameters out."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from phones import PAUSE, PHONES, VOWELS, spread_stress

SPEAKERS = ("slt", "rms", "awb")
FRAME_SECONDS = 0.01
SUB_FRAMES = 2  # the vocoder runs at 5 ms
CEPSTRA = 25
BANDS = 5
SUB_FRAME_VALUES = 2 + CEPSTRA + BANDS  # log-F0, voicing, cepstra, aperiodicity
FRAME_VALUES = SUB_FRAMES * SUB_FRAME_VALUES

ALL_PASS = 0.42  # mel-like frequency warping of the teacher's cepstra at 16 kHz
POST_FILTER = 0.4  # the teacher's own formant emphasis
INITIAL_PAUSE_FRAMES = 2  # the teacher waits 200 ms; a listener should not
# The teacher pauses 140 ms after a sentence as after a comma; readers take twice that.
COMMA_PAUSE_STRETCH = 1.2
SENTENCE_PAUSE_STRETCH = 2.2

# The decoder's pulses come 1.5 sub-frames after the spectrum of the same row (its window looks back), so the spectrum is
# stored one sub-frame later; the rest is 2.5 ms.
SPECTRUM_SHIFT = 1

# Terminal classes of a clause, by the punctuation that ends it.
CONTINUING, PERIOD, QUESTION, EXCLAMATION = range(4)
PLACE_LIMIT = 40

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]


@dataclass
class Example:
    """One utterance by one speaker."""

    text: str
    speaker: int
    ids: Integers  # [4, phones]: phone, stress, word start, terminal class
    place: Floats  # [2, phones]: distance to the clause's two ends
    durations: Integers  # [phones], frames of 10 ms
    frames: Floats  # [frames, FRAME_VALUES]


def terminal_class(punctuation: str) -> int:
    for mark, kind in (("?", QUESTION), ("!", EXCLAMATION), (".", PERIOD)):
        if mark in punctuation:
            return kind
    return CONTINUING


def clauses_of(names: list[str]) -> list[tuple[int, int]]:
    """The spans between pauses, each pause a span of its own."""
    spans: list[tuple[int, int]] = []
    start = 0
    for index, name in enumerate(names):
        if name == PAUSE:
            if index > start:
                spans.append((start, index))
            spans.append((index, index + 1))
            start = index + 1
    if start < len(names):
        spans.append((start, len(names)))
    return spans


def place_in_clause(names: list[str]) -> Floats:
    place = np.zeros((2, len(names)), np.float32)
    for start, end in clauses_of(names):
        position = np.arange(end - start)
        place[0, start:end] = np.minimum(position, PLACE_LIMIT) / PLACE_LIMIT
        place[1, start:end] = np.minimum(position[::-1], PLACE_LIMIT) / PLACE_LIMIT
    return place


def emphasise_formants(cepstra: NDArray[np.float64]) -> NDArray[np.float64]:
    """The post-filter of the teacher's synthesiser: higher cepstra grow, energy stays."""
    frequency = np.linspace(0, np.pi, 257)
    warped = frequency + 2 * np.arctan2(ALL_PASS * np.sin(frequency), 1 - ALL_PASS * np.cos(frequency))
    basis = np.cos(np.outer(np.arange(CEPSTRA), warped))
    result = cepstra.copy()
    result[:, 2:] *= 1 + POST_FILTER
    energy = np.exp(2 * cepstra @ basis).mean(1)
    result[:, 0] += 0.5 * np.log(energy / np.exp(2 * result @ basis).mean(1))
    return result


def continuous_pitch(f0: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log-F0 with unvoiced stretches bridged, so that the net need not learn jumps."""
    voiced = np.flatnonzero(f0 > 0)
    if len(voiced) == 0:
        return np.full(len(f0), np.log(120.0))
    return np.interp(np.arange(len(f0)), voiced, np.log(f0[voiced]))


def shape_intonation(pitch: NDArray[np.float64], names: list[str], ids: Integers, ends: Integers, mean: float) -> None:
    """Gives each clause the tune of its punctuation, in place: the teacher, taught by read prose, hardly knows questions.

    Amounts are natural logarithms of F0: 0.1 is 1.7 semitones. The nuclear tune runs from the last stressed vowel on.
    """
    rise = {CONTINUING: 0.08, PERIOD: -0.09, QUESTION: 0.30, EXCLAMATION: -0.05}
    for start, end in clauses_of(names):
        if names[start] == PAUSE:
            continue
        kind = int(ids[3, start])
        first = SUB_FRAMES * int(ends[start - 1] if start else 0)
        last = SUB_FRAMES * int(ends[end - 1])
        vowels = [i for i in range(start, end) if names[i] in VOWELS]
        nucleus = max((i for i in vowels if ids[1, i]), default=vowels[-1] if vowels else start)
        nucleus_start = SUB_FRAMES * int(ends[nucleus - 1] if nucleus else 0)
        span = pitch[first:last]
        if kind == EXCLAMATION:
            span[:] = mean + 1.25 * (span - mean) + 0.07
        if kind == PERIOD:
            span += np.linspace(0.03, -0.03, len(span))
        progress = np.linspace(0, 1, last - nucleus_start)
        pitch[nucleus_start:last] += rise[kind] * progress * progress * (3 - 2 * progress)


def stretch_pauses(frames: Floats, durations: Integers, names: list[str], ids: Integers) -> Floats:
    """Lengthens the pauses inside an utterance by repeating their middle frame; `durations` changes in place."""
    repeats = np.ones(len(frames), np.int64)
    ends = np.cumsum(durations)
    for phone in range(1, len(names) - 1):
        if names[phone] == PAUSE:
            stretch = COMMA_PAUSE_STRETCH if ids[3, phone - 1] == CONTINUING else SENTENCE_PAUSE_STRETCH
            extra = round((stretch - 1) * int(durations[phone]))
            repeats[ends[phone] - durations[phone] // 2 - 1] += extra
            durations[phone] += extra
    return np.repeat(frames, repeats, axis=0)


def read_utterances(prefix: Path) -> list[tuple[str, list[list[str]], Floats]]:
    """Text, phone lines (split at spaces) and parameters of each utterance that teacher.c wrote."""
    values = np.fromfile(prefix.with_suffix(".f32"), np.float32).reshape(-1, 1 + CEPSTRA + BANDS)
    utterances: list[tuple[str, list[list[str]], Floats]] = []
    offset = 0
    for line in prefix.with_suffix(".txt").read_text(encoding="utf-8").splitlines():
        kind, rest = line.split(" ", 1)
        if kind == "U":
            count, text = rest.split(" ", 1)
            utterances.append((text, [], values[offset : offset + int(count)]))
            offset += int(count)
        else:
            utterances[-1][1].append(rest.split(" "))
    assert offset == len(values), "labels and frames of the teacher disagree"
    return utterances


def make_ids(lines: list[list[str]]) -> tuple[list[str], Integers]:
    """The encoder's input of one utterance: phone names and the four rows of ids."""
    names = [line[0] for line in lines]
    starts = [int(line[3]) if line[0] != PAUSE else 0 for line in lines]
    ids = np.zeros((4, len(names)), np.int64)
    ids[0] = [PHONES.index(name) for name in names]
    ids[2] = starts
    # Words run from start to start, and end at pauses.
    borders = [i for i in range(len(names)) if starts[i] or names[i] == PAUSE] + [len(names)]
    for start, end in zip(borders, borders[1:]):
        if names[start] != PAUSE:
            ids[1, start:end] = spread_stress(names[start:end], [int(line[2] == "1") for line in lines[start:end]])
    for start, end in clauses_of(names):
        if names[start] != PAUSE:
            ids[3, start:end] = terminal_class(lines[end - 1][4])
    return names, ids


def make_example(text: str, lines: list[list[str]], values: Floats, speaker: int, mean: float) -> Example | None:
    """None if the utterance is of no use: too short, too long, or with a phone of no frame."""
    names, ids = make_ids(lines)
    count = len(values) // SUB_FRAMES
    ends = np.round(np.array([float(line[1]) for line in lines]) / FRAME_SECONDS).astype(np.int64)
    ends[-1] = count
    durations = np.diff(np.concatenate([[0], np.minimum(ends, count)]))
    if not 30 <= count <= 1200 or (durations <= 0).any():
        return None

    values = values[: count * SUB_FRAMES]
    pitch = continuous_pitch(values[:, 0].astype(np.float64))
    shape_intonation(pitch, names, ids, np.minimum(ends, count), mean)
    spectrum = np.concatenate(
        [emphasise_formants(values[:, 1 : 1 + CEPSTRA].astype(np.float64)), np.clip(values[:, 1 + CEPSTRA :], 0, 1)], axis=1
    )
    spectrum = np.concatenate([np.repeat(spectrum[:1], SPECTRUM_SHIFT, axis=0), spectrum[:-SPECTRUM_SHIFT]])
    rows = np.column_stack([pitch, values[:, 0] > 0, spectrum]).astype(np.float32)
    frames = rows.reshape(count, FRAME_VALUES)
    if names[0] == PAUSE and durations[0] > INITIAL_PAUSE_FRAMES:
        frames = frames[durations[0] - INITIAL_PAUSE_FRAMES :]
        durations[0] = INITIAL_PAUSE_FRAMES
    frames = stretch_pauses(frames, durations, names, ids)
    return Example(text, speaker, ids, place_in_clause(names), durations, frames)


def load_examples(folder: Path, part: str) -> list[Example]:
    """All utterances of one part ("train" or "eval") by all speakers."""
    examples: list[Example] = []
    for speaker, name in enumerate(SPEAKERS):
        utterances = read_utterances(folder / f"{part}-{name}")
        voiced = np.concatenate([values[:, 0] for _, _, values in utterances])
        mean = float(np.log(voiced[voiced > 0]).mean())
        for text, lines, values in utterances:
            example = make_example(text, lines, values, speaker, mean)
            if example is not None:
                examples.append(example)
    return examples


def frame_positions(durations: Integers) -> tuple[Integers, Floats]:
    """The frame net's other inputs: each frame's phone, and where in the phone it is."""
    index = np.repeat(np.arange(len(durations)), durations)
    within = np.arange(len(index)) - (np.cumsum(durations) - durations)[index]
    length = durations[index]
    position = np.stack(
        [
            (within + 0.5) / length,
            np.minimum(within, 20) / 20,
            np.minimum(length - 1 - within, 20) / 20,
            np.log(length) / 3,
        ]
    )
    return index, position.astype(np.float32)
