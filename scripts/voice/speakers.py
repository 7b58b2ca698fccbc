"""Item 2: are the nine voices different people?

Three things of the same sentences: the long-term spectrum of loud rows (level taken out), mean F0, and the formants of
each vowel. A filter or a longer vocal tract moves all formants by one factor; what is left after that factor, the pattern,
belongs to a person.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

import natural
from engine import DEFAULT, Request, render, voice_ids
from measures import bands_below, is_loud, log_bands
from phonemes import phone_set
from praat import formant_tracks
from report import Bar, Report
from utterances import WORK, Utterance, aligned, first_takes, of_voice

Floats = NDArray[np.float64]
SENTENCES = 60
HIGHEST_HZ = 7000  # the other recordings of the training end at 8 kHz
LEAST_ROWS = 40  # of a vowel, for its formants to count
# Two voices are clearly different people if spectrum and formant pattern differ so much; two halves of one speaker's
# sentences differ by far less.
SPECTRUM_DB, PATTERN = 3.0, 4.0
DIFFERENT_LEAST = 4


@dataclass
class Portrait:
    """What distinguishes a speaker."""

    spectrum: Floats  # dB in bands up to 7 kHz
    pitch_hz: float
    formants: dict[str, Floats]  # natural logarithms of F1 to F3, for each vowel
    counts: dict[str, int]  # rows of each vowel


@dataclass
class Distance:
    spectrum_db: float
    pitch_semitones: float
    scale: float  # per cent: the common factor of all formants
    pattern: float  # per cent: deviation of the formants that the factor leaves

    @property
    def is_clear(self) -> bool:
        return self.spectrum_db >= SPECTRUM_DB and self.pattern >= PATTERN

    def __str__(self) -> str:
        return f"{self.spectrum_db:.1f}/{self.pitch_semitones:.1f}/{self.scale:+.0f}/{self.pattern:.1f}"


def portrait(utterances: list[Utterance]) -> Portrait:
    vowels = phone_set(WORK).vowels
    power: list[Floats] = []
    rows: dict[str, list[Floats]] = {}
    for one, formants in zip(utterances, formant_tracks([one.wave for one in utterances])):
        bands = log_bands(one.signal)
        power.append(np.exp(2 * bands[is_loud(bands, 25)]))
        for phone in one.phones:
            if phone.name in vowels:
                # The middle of the vowel: its neighbours bend the ends.
                quarter = (phone.end - phone.start) // 4
                part = formants[phone.start + quarter : phone.end - quarter]
                rows.setdefault(phone.name, []).append(part[(part > 0).all(1)])
    spectrum = 10 * np.log10(np.concatenate(power).mean(0))[: bands_below(HIGHEST_HZ)]
    together = {vowel: np.concatenate(parts) for vowel, parts in rows.items()}
    medians = {vowel: np.log(np.median(part, 0)) for vowel, part in together.items() if len(part) >= LEAST_ROWS}
    voiced = np.concatenate([one.f0[one.f0 > 0] for one in utterances])
    return Portrait(spectrum - spectrum.mean(), float(np.median(voiced)), medians, {vowel: len(part) for vowel, part in together.items()})


def distance(one: Portrait, other: Portrait) -> Distance:
    common = sorted(one.formants.keys() & other.formants.keys())
    ratios = np.array([one.formants[vowel] - other.formants[vowel] for vowel in common])
    weights = np.array([min(one.counts[vowel], other.counts[vowel]) for vowel in common], np.float64)
    weights /= weights.sum()
    scale = float(weights @ ratios.mean(1))
    left = float(np.sqrt(weights @ ((ratios - scale) ** 2).mean(1)))
    spectrum = float(np.sqrt(((one.spectrum - other.spectrum) ** 2).mean()))
    return Distance(spectrum, float(12 * np.log2(one.pitch_hz / other.pitch_hz)), 100 * scale, 100 * left)


def most_different(names: list[str], distances: dict[tuple[str, str], Distance]) -> tuple[str, ...]:
    """The largest set of voices of which every two are clearly different."""
    for size in range(len(names), 1, -1):
        for some in combinations(names, size):
            if all(distances[pair].is_clear for pair in combinations(some, 2)):
                return some
    return (names[0],)


def measure_speakers(report: Report) -> None:
    report.heading(f"nine voices on {SENTENCES} held-out sentences: melody of each beside the person's")
    person = first_takes()[:SENTENCES]
    natural_person = natural.figures_of([one.wave for one in person], 55)
    portraits: dict[str, Portrait] = {}
    for voice in voice_ids():
        asked = [Request(f"{voice}-{number:02d}", voice, one.text, number) for number, one in enumerate(person)]
        spoken = of_voice(render(asked, WORK / "speakers"))
        portraits[voice] = portrait(spoken)
        own = natural.figures_of([one.wave for one in spoken], 55)
        span = natural_person.mean("F0 span")
        report.figure(f"{voice}: F0 span", own.mean("F0 span"), "semitones", Bar(0.75 * span, 1.6 * span), span)
        for name, margin in (("F0 slope", 0.4), ("cepstral flux", 0.3), ("variance of cepstra 9 to 24", 0.5)):
            beside = natural_person.mean(name)
            report.figure(f"{voice}: {name}", own.mean(name), "ln", Bar(beside - margin, beside + margin), beside)
        report.figure(f"{voice}: energy above 8 kHz", own.high_db, "dB", None, natural_person.high_db)
    names = list(portraits)
    report.note("mean F0: " + ", ".join(f"{name} {one.pitch_hz:.0f} Hz" for name, one in portraits.items()))
    distances = {(a, b): distance(portraits[a], portraits[b]) for a, b in combinations(names, 2)}
    halves = distance(portrait(person[::2]), portrait(person[1::2]))
    report.note("distances: spectrum dB / F0 semitones / formants' common factor % / what it leaves %")
    report.note(f"halves of the person's sentences: {halves}")
    known = {"person": portrait(person)} | {name: portrait(some) for name, some in list(aligned().items())[1:] if some}
    for (a, one), (b, other) in combinations(known.items(), 2):
        report.note(f"speakers of the training: {a} and {b}: {distance(one, other)}")
    report.note(f"{DEFAULT} and the person: {distance(portraits[DEFAULT], known['person'])}")
    for name in names[:-1]:
        row = ", ".join(f"{other} {distances[name, other]}" for other in names[names.index(name) + 1 :])
        report.note(f"{name}: {row}")
    chosen = most_different(names, distances)
    report.note(f"clearly different (spectrum >= {SPECTRUM_DB:g} dB, formants' pattern >= {PATTERN:g} %): {', '.join(chosen)}")
    report.figure("voices of which every two are clearly different", len(chosen), "", Bar(DIFFERENT_LEAST))
