"""Item 2: are the nine voices different people?

Two voices are clearly different if their timbres are at least as far apart as the two most alike of five people who say the same
sentences: the person of the recordings, and the speakers of four voices of flite. `timbre.py` measures the distance.
"""

import subprocess
import tempfile
from itertools import chain, combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import natural
from engine import Request, render, voice_ids
from measures import SAMPLE_RATE
from praat import pitch_tracks
from report import Bar, Report
from timbre import Timbres, timbre_rows
from utterances import WORK, first_takes

Floats = NDArray[np.float64]
SENTENCES = 40
FLOOR_HZ = 55
FLITE_VOICES = ("slt", "rms", "awb", "kal16")
DIFFERENT_LEAST = 4


def flite_speaks(voice: str, texts: list[str]) -> list[Path]:
    folder = WORK / "people"
    folder.mkdir(parents=True, exist_ok=True)
    waves = [folder / f"{voice}-{number:02d}.wav" for number in range(len(texts))]
    with tempfile.NamedTemporaryFile(suffix=".wav") as spoken:
        for text, wave in zip(texts, waves):
            subprocess.run(["flite", "-voice", voice, "-t", text, "-o", spoken.name], check=True)
            subprocess.run(["sox", "-G", spoken.name, "-r", str(SAMPLE_RATE), "-b", "16", str(wave)], check=True)
    return waves


def mean_pitch_hz(waves: list[Path]) -> float:
    voiced = [track[track > 0] for track in pitch_tracks(waves, FLOOR_HZ)]
    return float(np.median(np.concatenate(voiced)))


def most_different(names: list[str], distances: dict[tuple[str, str], float], least: float) -> tuple[str, ...]:
    """The largest set of voices of which any two are at least `least` apart."""
    for size in range(len(names), 1, -1):
        for some in combinations(names, size):
            if all(distances[pair] >= least for pair in combinations(some, 2)):
                return some
    return (names[0],)


def measure_melodies(report: Report, spoken: dict[str, list[Path]], person: list[Path]) -> None:
    report.heading(f"nine voices on {SENTENCES} held-out sentences: melody of each beside the person's")
    natural_person = natural.figures_of(person, FLOOR_HZ)
    for voice, waves in spoken.items():
        own = natural.figures_of(waves, FLOOR_HZ)
        span = natural_person.mean("F0 span")
        report.figure(f"{voice}: F0 span", own.mean("F0 span"), "semitones", Bar(0.75 * span, 1.6 * span), span)
        for name, margin in (("F0 slope", 0.4), ("cepstral flux", 0.3), ("variance of cepstra 9 to 24", 0.5)):
            beside = natural_person.mean(name)
            report.figure(f"{voice}: {name}", own.mean(name), "ln", Bar(beside - margin, beside + margin), beside)
        report.figure(f"{voice}: energy above 8 kHz", own.high_db, "dB", None, natural_person.high_db)


def measure_distances(report: Report, spoken: dict[str, list[Path]], people: dict[str, list[Path]]) -> None:
    report.heading("distances of timbres; real people are the measure")
    rows = {name: timbre_rows(waves) for name, waves in (people | spoken).items()}
    timbres = Timbres(np.concatenate(list(chain.from_iterable(rows[name] for name in people))))

    def adapted(some: list[Floats]) -> list[Floats]:
        return timbres.adapted(np.concatenate(some))

    means = {name: adapted(some) for name, some in rows.items()}
    halves = [timbres.distance(adapted(some[::2]), adapted(some[1::2])) for some in rows.values()]
    report.note(f"two halves of one speaker's sentences: {min(halves):.2f} to {max(halves):.2f}")
    distances = {pair: timbres.distance(means[pair[0]], means[pair[1]]) for pair in combinations(means, 2)}
    pitches = {name: mean_pitch_hz(waves) for name, waves in (people | spoken).items()}
    report.note("F0 in Hz, and distance from each of the speakers above:")
    for place, name in enumerate(means):
        row = " ".join(f"{distances[other, name]:5.2f}" for other in list(means)[:place])
        report.note(f"{name:<10} {pitches[name]:4.0f}  {row}")
    least = min(distances[pair] for pair in combinations(people, 2))
    chosen = most_different(list(spoken), distances, least)
    report.note(f"at least {least:.2f} from each other, as two people: {', '.join(chosen)}")
    report.figure("voices of which every two are clearly different", len(chosen), "", Bar(DIFFERENT_LEAST))


def measure_speakers(report: Report) -> None:
    takes = first_takes()[:SENTENCES]
    texts, person = [one.text for one in takes], [one.wave for one in takes]
    spoken = {}
    for voice in voice_ids():
        asked = [Request(f"{voice}-{number:02d}", voice, text, number) for number, text in enumerate(texts)]
        spoken[voice] = [one.wave for one in render(asked, WORK / "speakers")]
    measure_melodies(report, spoken, person)
    people = {"person": person} | {voice: flite_speaks(voice, texts) for voice in FLITE_VOICES}
    measure_distances(report, spoken, people)
