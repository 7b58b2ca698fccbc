#!/usr/bin/python3
"""Training examples: phones with their clause's style, durations, and rows of F0, voicing and envelope.

A clause here is what is spoken between two pauses, wherever they are. Its style says how it was spoken: mean and spread of
ln F0, pace, and `tune`, where F0 ends. The engine draws styles, so that no two readings are the same.

`dataset.py` writes work/statistics.json and prints a table to check the alignment with.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from analysis import load_features
from phonemes import CONTINUING, PAUSE, PERIOD, PHONE, STRESS, TERMINAL, phone_set
from recordings import WORK, held_out

SPEAKERS = ("kathleen", "slt", "rms", "awb")  # the person first
FRAME_ROWS = 2
PLACE_MAX = 40
STYLES = ("mean", "spread", "pace", "tune")
STYLE_MAX = 2.5
TUNE_ROWS = 16  # the last voiced 80 ms
VOICED_ROWS_MIN = 30  # a clause with fewer says little about F0
CLAUSES_MIN = 50  # a terminal class with fewer takes the statistics of a statement
TERMINALS = 4
SCORE_BELOW_MEDIAN_MAX = 0.4  # a recording that fits its text this much worse is not learnt from

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]


@dataclass
class Example:
    name: str
    speaker: int
    text: str
    held_out: bool
    ids: Integers  # [4, phones]: phone, stress, word start, terminal class
    place: Floats  # [2, phones]: distance to the clause's two ends
    style: Floats  # [4, phones], standardised; 0 for pauses, and for all speakers but the person
    durations: Integers  # [phones], frames of 10 ms
    rows: Floats  # [2 x frames, 82]: ln F0 without gaps, voiced, 80 bands
    clauses: list[tuple[int, int]]  # spans of phones, pauses left out


def spans_between_pauses(phones: Integers) -> list[tuple[int, int]]:
    borders = [-1, *np.flatnonzero(phones == PAUSE).tolist(), len(phones)]
    return [(start + 1, end) for start, end in zip(borders, borders[1:]) if end > start + 1]


def place_in_clause(count: int, clauses: list[tuple[int, int]]) -> Floats:
    place = np.zeros((2, count), np.float32)
    for start, end in clauses:
        position = np.minimum(np.arange(end - start), PLACE_MAX) / PLACE_MAX
        place[0, start:end], place[1, start:end] = position, position[::-1]
    return place


def frame_durations(end_rows: list[int], frames: int) -> Integers | None:
    """Whole frames, at least one for each phone; None if there are not enough."""
    ends = np.round(np.array(end_rows) / FRAME_ROWS).astype(np.int64)
    count = len(ends)
    ends[-1] = frames
    ends = np.maximum.accumulate(np.maximum(ends - np.arange(count), 1)) + np.arange(count)
    ends = np.minimum(ends, frames - np.arange(count)[::-1])
    durations = np.diff(ends, prepend=0)
    return durations if durations.min() >= 1 else None


def aligned_ids(track: Integers, places: list[int]) -> tuple[Integers, list[tuple[int, int]]]:
    """The phones as they were spoken, with the pauses that were made, and their clauses."""
    sounds = np.flatnonzero(track[PHONE] != PAUSE)
    ids = np.zeros((4, len(places)), np.int64)
    for i, place in enumerate(places):
        if place >= 0:
            ids[:, i] = track[:, sounds[place]]
    clauses = spans_between_pauses(ids[PHONE])
    for start, end in clauses:
        last = sounds[places[end - 1]]
        ids[TERMINAL, start:end] = track[TERMINAL, last] if track[PHONE, last + 1] == PAUSE else CONTINUING
    return ids, clauses


def continuous_pitch(f0: Floats) -> Floats:
    """ln F0, with straight lines over what is unvoiced."""
    voiced = np.flatnonzero(f0 > 0)
    return np.interp(np.arange(len(f0)), voiced, np.log(f0[voiced])).astype(np.float32)


def read_examples(folder: Path, speaker_of, kept_out: set[str], work: Path) -> list[Example]:
    """The utterances of an alignment; `folder` holds alignment.jsonl, tracks.npz and metadata.csv."""
    lines = [json.loads(line) for line in (folder / "alignment.jsonl").read_text().splitlines()]
    said = dict(line.split("|", 1) for line in (folder / "metadata.csv").read_text(encoding="utf-8").splitlines())
    limit = np.median([line["score"] for line in lines]) - SCORE_BELOW_MEDIAN_MAX
    examples = []
    with np.load(folder / "tracks.npz") as tracks:
        for line in lines:
            name = line["name"]
            f0, bands = load_features(name, work)
            frames = len(f0) // FRAME_ROWS
            durations = frame_durations(line["ends"], frames)
            is_misread = line["score"] < limit and name not in kept_out
            if is_misread or durations is None or (f0 > 0).sum() < 20:
                continue
            ids, clauses = aligned_ids(tracks[name], line["phones"])
            rows = np.column_stack([continuous_pitch(f0), f0 > 0, bands])[: FRAME_ROWS * frames].astype(np.float32)
            place = place_in_clause(ids.shape[1], clauses)
            style = np.zeros(ids.shape, np.float32)
            text = said[name].strip()
            examples.append(Example(name, speaker_of(name), text, name in kept_out, ids, place, style, durations, rows, clauses))
    return examples


def usual_durations(examples: list[Example]) -> NDArray[np.float64]:
    """Mean ln duration by phone and stress."""
    ids = np.concatenate([example.ids for example in examples], 1)
    kind = 2 * ids[PHONE] + ids[STRESS]
    log_duration = np.log(np.concatenate([example.durations for example in examples]))
    return np.bincount(kind, log_duration, 200) / np.maximum(np.bincount(kind, minlength=200), 1)


def clause_values(example: Example, clause: tuple[int, int], usual: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
    """The four values of a clause before they are standardised, and its voiced rows."""
    start, end = clause
    ends = np.concatenate([[0], np.cumsum(example.durations)]) * FRAME_ROWS
    rows = example.rows[ends[start] : ends[end]]
    pitch = rows[rows[:, 1] > 0.5, 0]
    kind = 2 * example.ids[PHONE, start:end] + example.ids[STRESS, start:end]
    pace = float((np.log(example.durations[start:end]) - usual[kind]).mean())
    if len(pitch) == 0:
        return np.array([np.nan, np.nan, pace, np.nan]), 0
    return np.array([pitch.mean(), pitch.std(), pace, pitch[-TUNE_ROWS:].mean() - pitch.mean()]), len(pitch)


def style_statistics(examples: list[Example], usual: NDArray[np.float64]) -> list[dict]:
    """Mean, deviation and correlation of the four values in each terminal class."""
    found: list[list[NDArray[np.float64]]] = [[] for _ in range(TERMINALS)]
    for example in examples:
        for clause in example.clauses:
            values, voiced = clause_values(example, clause, usual)
            if voiced >= VOICED_ROWS_MIN:
                found[example.ids[TERMINAL, clause[0]]].append(values)
    result = []
    for values in found:
        table = np.array(values if len(values) >= CLAUSES_MIN else found[PERIOD])
        result.append({
            "clauses": len(values),
            "mean": table.mean(0).round(5).tolist(),
            "deviation": table.std(0).round(5).tolist(),
            "correlation": np.corrcoef(table.T).round(4).tolist(),
        })  # fmt: skip
    return result


def set_styles(examples: list[Example], terminals: list[dict], usual: NDArray[np.float64]) -> None:
    for example in examples:
        for clause in example.clauses:
            values, _ = clause_values(example, clause, usual)
            of_class = terminals[example.ids[TERMINAL, clause[0]]]
            standard = (values - of_class["mean"]) / of_class["deviation"]
            example.style[:, slice(*clause)] = np.clip(np.nan_to_num(standard), -STYLE_MAX, STYLE_MAX)[:, None]


def load(work: Path = WORK) -> list[Example]:
    """The person's examples, and those of the teacher's speakers if they are there."""
    person = read_examples(work, lambda name: 0, set(held_out(work)), work)
    training = [example for example in person if not example.held_out]
    usual = usual_durations(training)
    set_styles(person, style_statistics(training, usual), usual)
    teacher = work / "teacher"
    if not (teacher / "alignment.jsonl").exists():
        return person
    return person + read_examples(teacher, lambda name: SPEAKERS.index(name.split("-")[0]), set(), work)


def statistics(work: Path = WORK) -> dict:
    """`terminals`: for each terminal class `clauses`, and `mean` [4], `deviation` [4], `correlation` [4][4] of the styles.
    `pitch`: mean and deviation of ln F0 of each speaker. Nothing held out is in them."""
    path = work / "statistics.json"
    return json.loads(path.read_text())


def measure(examples: list[Example]) -> dict:
    training = [example for example in examples if not example.held_out]
    person = [example for example in training if example.speaker == 0]
    pitch = {}
    for speaker, name in enumerate(SPEAKERS):
        rows = [example.rows[:, :2] for example in training if example.speaker == speaker]
        if rows:
            table = np.concatenate(rows)
            values = table[table[:, 1] > 0.5, 0]
            pitch[name] = {"mean": round(float(values.mean()), 4), "deviation": round(float(values.std()), 4)}
    return {"styles": STYLES, "terminals": style_statistics(person, usual_durations(person)), "pitch": pitch}


def spread_within_phones(examples: list[Example]) -> float:
    """Standard deviation of ln duration around the mean of the phone, pauses left out."""
    ids = np.concatenate([example.ids[PHONE] for example in examples])
    values = np.log(np.concatenate([example.durations for example in examples]))
    values, ids = values[ids != PAUSE], ids[ids != PAUSE]
    means = np.bincount(ids, values) / np.maximum(np.bincount(ids), 1)
    return float((values - means[ids]).std())


def print_table(examples: list[Example], names: list[str]) -> None:
    """Durations (percentiles, ms), voiced share and level of each phone."""
    durations: list[list[int]] = [[] for _ in names]
    voiced: list[list[float]] = [[] for _ in names]
    level: list[list[float]] = [[] for _ in names]
    for example in examples:
        ends = np.cumsum(example.durations)
        for phone, duration, end in zip(example.ids[PHONE], example.durations, ends):
            rows = example.rows[FRAME_ROWS * (end - duration) : FRAME_ROWS * end]
            durations[phone].append(duration)
            voiced[phone].append(rows[:, 1].mean())
            level[phone].append(rows[:, 2:].mean())
    print("phone count   5 %  50 %  95 %  voiced level")
    for phone, name in enumerate(names):
        if durations[phone]:
            low, middle, high = np.percentile(durations[phone], [5, 50, 95]) * 10
            print(f"{name:5} {len(durations[phone]):5} {low:5.0f} {middle:5.0f} {high:5.0f}"
                  f"   {np.mean(voiced[phone]):5.2f} {np.mean(level[phone]):6.2f}")  # fmt: skip


def main() -> None:
    examples = load()
    values = measure(examples)
    (WORK / "statistics.json").write_text(json.dumps(values, indent=1))
    person = [example for example in examples if example.speaker == 0]
    for speaker, name in enumerate(SPEAKERS):
        own = [example for example in examples if example.speaker == speaker]
        frames = sum(int(example.durations.sum()) for example in own)
        print(f"{name}: {len(own)} examples, {frames / 6000:.1f} minutes, {sum(len(e.clauses) for e in own)} clauses")
        if own and (name in sys.argv[1:] or speaker == 0):
            print_table(own, phone_set().names)
    for what, part in (("training", False), ("held out", True)):
        own = [example for example in person if example.held_out == part]
        print(f"{what}: {len(own)} examples, deviation of ln duration within a phone {spread_within_phones(own):.3f}")
    print(json.dumps(values))


if __name__ == "__main__":
    main()
