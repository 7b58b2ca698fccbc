"""Item 5, where segments meet: steps of F0 and energy against commas and against the same words uncut."""

from dataclasses import dataclass, field
from statistics import median

import numpy as np
from numpy.typing import NDArray

from engine import Rendered, Request, render, voice_ids
from measures import ROW, SAMPLE_RATE, levels_db
from praat import pitch_tracks
from report import Bar, Report
from utterances import WORK
from wave_file import read_wave

LONG_TEXT = (
    "the first thing that we did when we came home was to open all of the windows and then we sat down in the kitchen "
    "and talked about the journey until it was dark and nobody wanted to be the one who would get up and light the lamp "
    "so we went on talking in the dark about the people that we had met and the places that we would like to see again "
    "and about the old man with the boat who had told us that he had never in his life been farther than the next town"
)
COMMA_TEXT = LONG_TEXT.replace(" and ", ", and ").replace(" so we", ", so we").replace(" who ", ", who ") + "."
READINGS = 3  # of each text by each voice
# Medians of 300 steps are this uncertain.
NOISE = {"F0": 0.3, "energy": 1.0}
UNITS = {"F0": "semitones", "energy": "dB"}


@dataclass
class Steps:
    """Steps of F0 in semitones and of energy in dB."""

    values: dict[str, list[float]] = field(default_factory=lambda: {"F0": [], "energy": []})

    def add(self, one: Rendered, f0: NDArray[np.float64], places: set[float]) -> None:
        """@param places in seconds"""
        signal, rate = read_wave(one.wave)
        loud = levels_db(signal, rate, 0.05)
        for place in sorted(places):
            pitch = pitch_step(f0, round(place * SAMPLE_RATE / ROW))
            if pitch is not None:
                self.values["F0"].append(pitch)
            window = int(place * 20)
            if 0 < window < len(loud) - 1:
                self.values["energy"].append(float(abs(loud[window + 1] - loud[window - 1])))


def pitch_step(f0: NDArray[np.float64], row: int) -> float | None:
    """Semitones between the last voiced 50 ms before a row and the first after it, if both are near."""
    before, after = f0[max(0, row - 80) : row], f0[row : row + 80]
    before, after = before[before > 0][-10:], after[after > 0][:10]
    if len(before) < 10 or len(after) < 10:
        return None
    return float(abs(12 * np.log2(np.median(after) / np.median(before))))


def word_before(one: Rendered, seam: int) -> int:
    """The number of the word that a seam follows."""
    return sum(word.end_seconds * SAMPLE_RATE <= seam + ROW for word in one.words) - 1


def cut_and_uncut(name: str, texts: list[str], early: bool, first_only: bool) -> tuple[dict[str, Steps], list[float]]:
    """Steps at the seams of each text, by every voice, and at the same words uncut; jumps of a sample at seams, of the peak."""
    jobs = [(voice, text) for voice in voice_ids() for text in READINGS * texts]
    # Each with a seed of its own: with one seed the steps of all voices would be alike.
    cut = render([Request(f"{name}-{n}", voice, text, n, early=early) for n, (voice, text) in enumerate(jobs)], WORK / "seams")
    whole = render([Request(f"{name}-uncut-{n}", voice, text, n, uncut=True) for n, (voice, text) in enumerate(jobs)], WORK / "seams")
    tracks = {kind: pitch_tracks([one.wave for one in some]) for kind, some in (("seam", cut), ("uncut", whole))}
    steps = {"seam": Steps(), "uncut": Steps()}
    jumps = []
    for number, (one, other) in enumerate(zip(cut, whole)):
        seams = one.seams[:1] if first_only else one.seams
        signal, _ = read_wave(one.wave)
        jumps += [float(abs(signal[seam] - signal[seam - 1]) / np.abs(signal).max()) for seam in seams]
        steps["seam"].add(one, tracks["seam"][number], {seam / SAMPLE_RATE for seam in seams})
        same = {other.words[word_before(one, seam)].end_seconds for seam in seams}
        steps["uncut"].add(other, tracks["uncut"][number], same)
    return steps, jumps


def measure_forced(report: Report) -> None:
    report.heading("where segments meet in long texts without punctuation, against the same words uncut")
    words = LONG_TEXT.split()
    # Texts that begin at other words are cut at other words.
    turned = [" ".join(words[start:] + words[:start]) for start in range(0, 40, 5)]
    steps, jumps = cut_and_uncut("long", turned, early=False, first_only=False)
    commas = Steps()
    rendered = render([Request(f"comma-{voice}", voice, COMMA_TEXT) for voice in voice_ids()], WORK / "seams")
    for one, f0 in zip(rendered, pitch_tracks([one.wave for one in rendered])):
        commas.add(one, f0, {word.end_seconds for word in one.words if word.word.endswith(",")})
    report.note(f"{len(jumps)} seams, {len(commas.values['energy'])} commas")
    report.figure("largest jump of a sample at a seam, of the peak", max(jumps), "", Bar(most=0.01))
    for name, unit in UNITS.items():
        seam, uncut = steps["seam"].values[name], steps["uncut"].values[name]
        report.figure(f"{name} step at seams, median", median(seam), unit, Bar(most=round(median(uncut) + NOISE[name], 2)))
        report.figure(f"{name} step, the same words uncut, median", median(uncut), unit)
        high, most = float(np.percentile(uncut, 90)), float(np.percentile(seam, 90))
        report.figure(f"{name} step at seams, 90th percentile", most, unit, Bar(most=round(1.25 * high, 2)))
        report.figure(f"{name} step uncut, 90th percentile", high, unit)
        report.figure(f"{name} step at commas, median", median(commas.values[name]), unit)


def measure_early(report: Report) -> None:
    """The early end of a WebSocket's first segment, a few words into a clause."""
    report.heading("where the first segment of a WebSocket ends early, against the same words uncut")
    words = LONG_TEXT.split()
    texts = [" ".join((words[start:] + words[:start])[:14]) for start in range(0, len(words), 3)]
    steps, _ = cut_and_uncut("early", texts, early=True, first_only=True)
    for name, unit in UNITS.items():
        seam, uncut = steps["seam"].values[name], steps["uncut"].values[name]
        report.figure(f"{name} step, early, median", median(seam), unit, Bar(most=round(median(uncut) + NOISE[name], 2)))
        report.figure(f"{name} step, the same words uncut, median", median(uncut), unit)
        report.figure(f"{name} step, early, 90th percentile", float(np.percentile(seam, 90)), unit)
        report.figure(f"{name} step, uncut, 90th percentile", float(np.percentile(uncut, 90)), unit)


def measure_seams(report: Report) -> None:
    measure_forced(report)
    measure_early(report)
