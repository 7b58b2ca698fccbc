"""The same sentences, by the person and by the voice: waves, phones and F0 in one form."""

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import natural
from engine import Rendered
from measures import ROW
from phonemes import phone_set
from praat import pitch_tracks
from recordings import held_out, texts
from wave_file import read_wave

WORK = Path(__file__).resolve().parent / "work"
FORMER = WORK / "former"  # what an earlier version of the voice spoke, to compare with
PAUSE = "pau"
FRAME_ROWS = 2
FINAL_ROWS = 30  # voiced rows that count as the end of a phrase: 150 ms


@dataclass(frozen=True)
class Phone:
    name: str
    start: int  # rows of 5 ms
    end: int

    @property
    def frames(self) -> float:
        return (self.end - self.start) / FRAME_ROWS


@dataclass
class Utterance:
    name: str
    text: str
    wave: Path
    phones: list[Phone]
    f0: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    @cached_property
    def signal(self) -> NDArray[np.float32]:
        return read_wave(self.wave)[0]

    @cached_property
    def pitch(self) -> NDArray[np.float64]:
        """Semitones for each row, relative to the utterance's mean; not a number where there is no F0."""
        voiced = self.f0 > 0
        pitch = np.where(voiced, natural.semitones(self.f0), np.nan)
        return pitch - np.nanmean(pitch) if voiced.any() else pitch

    def voiced_before(self, row: int, rows: int) -> NDArray[np.float64]:
        """The last voiced values of `pitch` before a row."""
        part = self.pitch[max(0, row - 3 * rows) : row]
        return part[~np.isnan(part)][-rows:]

    @property
    def final_fall(self) -> float:
        """Semitones of the last 150 voiced ms relative to the mean."""
        voiced = self.pitch[~np.isnan(self.pitch)]
        return float(voiced[-FINAL_ROWS:].mean()) if len(voiced) else 0.0

    @property
    def final_movement(self) -> float:
        """Semitones that a line through the last 300 ms, from the last voiced row back, goes up."""
        places = np.flatnonzero(~np.isnan(self.pitch))
        if len(places) < 10:
            return 0.0
        places = places[places > places[-1] - 60]
        return float(60 * np.polyfit(places, self.pitch[places], 1)[0]) if len(places) >= 10 else 0.0

    def inner_ends(self, least_seconds: float = 0.06) -> list[float]:
        """Semitones of the last 150 voiced ms before each pause within the utterance, relative to the mean."""
        ends = []
        for place, phone in enumerate(self.phones):
            inside = 0 < place < len(self.phones) - 1
            if phone.name == PAUSE and inside and phone.frames >= 100 * least_seconds:
                before = self.voiced_before(phone.start + 4, FINAL_ROWS)
                if len(before) >= 10:
                    ends.append(float(before.mean()))
        return ends

    def phone_pitch(self) -> list[float]:
        """Mean of `pitch` in each phone but pauses; not a number where fewer than three rows have F0."""
        values = []
        for phone in self.phones:
            if phone.name != PAUSE:
                part = self.pitch[phone.start : phone.end]
                part = part[~np.isnan(part)]
                values.append(float(part.mean()) if len(part) >= 3 else float("nan"))
        return values

    @property
    def lengths(self) -> list[tuple[str, float]]:
        """Each phone but pauses, and its length in frames."""
        return [(phone.name, phone.frames) for phone in self.phones if phone.name != PAUSE]


def with_pitch(utterances: list[Utterance], floor_hz: float = 55) -> list[Utterance]:
    for one, f0 in zip(utterances, pitch_tracks([one.wave for one in utterances], floor_hz)):
        one.f0 = f0
    return utterances


def of_voice(rendered: list[Rendered], floor_hz: float = 55) -> list[Utterance]:
    utterances = [
        Utterance(
            one.wave.stem,
            one.text,
            one.wave,
            [Phone(phone.phone, round(phone.start / ROW), round(phone.end / ROW)) for phone in one.phones],
        )
        for one in rendered
    ]
    return with_pitch(utterances, floor_hz)


def held_out_texts() -> dict[str, str]:
    """The held-out sentences, and the first take of each."""
    said = texts(WORK)
    return {said[name]: name for name in reversed(held_out(WORK))}


def aligned_phones() -> dict[str, list[Phone]]:
    """The phones of those held-out takes that could be aligned."""
    from dataset import load  # loads much

    names = phone_set(WORK).names
    found = {}
    for example in load(WORK):
        if example.held_out:
            ends = FRAME_ROWS * np.cumsum(example.durations)
            starts = ends - FRAME_ROWS * example.durations
            found[example.name] = [Phone(names[phone], int(a), int(b)) for phone, a, b in zip(example.ids[0], starts, ends)]
    return found


@lru_cache(maxsize=1)
def of_person() -> list[Utterance]:
    """All takes of the held-out sentences."""
    said = texts(WORK)
    known = aligned_phones()
    takes = [Utterance(name, said[name], WORK / "wav" / f"{name}.wav", known.get(name, [])) for name in held_out(WORK)]
    return with_pitch(takes, natural.FLOOR_HZ)


def first_takes() -> list[Utterance]:
    """One utterance a sentence."""
    chosen = set(held_out_texts().values())
    return [one for one in of_person() if one.name in chosen]


def pairs_of_takes() -> list[tuple[Utterance, Utterance]]:
    """Two takes of one sentence, with the same phones."""
    groups: dict[str, list[Utterance]] = {}
    for one in of_person():
        groups.setdefault(one.text, []).append(one)
    pairs = [(takes[0], takes[1]) for takes in groups.values() if len(takes) > 1]
    return [(a, b) for a, b in pairs if [name for name, _ in a.lengths] == [name for name, _ in b.lengths] and a.lengths]


def variety(pairs: list[tuple[Utterance, Utterance]]) -> tuple[float, float]:
    """How much two readings differ: deviation of ln durations, and of the phones' F0 in semitones, for one reading."""
    lengths, pitches = [], []
    for one, other in pairs:
        first, second = (np.log(np.maximum([frames for _, frames in each.lengths], 0.5)) for each in (one, other))
        lengths.append(first - second)
        difference = np.array(one.phone_pitch()) - np.array(other.phone_pitch())
        pitches.append(difference[~np.isnan(difference)])
    all_lengths, all_pitches = np.concatenate(lengths), np.concatenate(pitches)
    # Octave errors of the tracker would outweigh everything else.
    all_pitches = all_pitches[np.abs(all_pitches) < 9]
    return float(all_lengths.std() / np.sqrt(2)), float(np.sqrt((all_pitches**2).mean() / 2))
