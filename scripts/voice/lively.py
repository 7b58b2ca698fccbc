"""Item 4: questions, commas, lists, phrase ends, two readings, temperature."""

from statistics import mean, median

import numpy as np

import natural
from engine import DEFAULT, Request, render, voice_ids
from measures import ROW
from report import Bar, Report
from sentences import evaluation_sentences
from utterances import WORK, Utterance, first_takes, of_person, of_voice, pairs_of_takes, variety

TEMPERATURES = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
SEEDS = 4
# An answer of yes or no is asked for with a rise; "where" and "why" may fall.
WITHOUT_RISE = ("where", "how", "why", "what", "who", "when", "which")
LISTS = (
    "We need bread, butter, eggs, cheese, and milk.",
    "The colors are red, green, yellow, white, and blue.",
    "He plays tennis, football, baseball, and hockey.",
    "I saw Anna, Maria, Simon, and Laura.",
    "The numbers are nine, eleven, nineteen, and seven.",
    "On Monday, on Wednesday, on Friday, and on Sunday.",
    "She bought a lamp, a mirror, a rug, and a blue vase.",
    "They come from Norway, Ireland, Germany, and Spain.",
)


def spoken(name: str, texts: list[str], voice: str = DEFAULT, seeds: int = 1, temperature: float = 1) -> list[Utterance]:
    asked = [
        Request(f"{name}-{voice}-{number}-{seed}", voice, text, 100 * seed + number, temperature)
        for number, text in enumerate(texts)
        for seed in range(seeds)
    ]
    return of_voice(render(asked, WORK / "lively"))


def measure_questions(report: Report) -> None:
    texts = [s.text for s in evaluation_sentences() if not s.is_short]
    questions = [text for text in texts if text.endswith("?")]
    asking = [text for text in questions if not text.lower().startswith(WITHOUT_RISE)]
    searching = [text for text in questions if text.lower().startswith(WITHOUT_RISE)]
    statements = [text for text in texts if text.endswith(".")][:20]
    report.heading("questions: semitones over the last 300 ms")
    person = [one.final_movement for one in of_person() if one.text.endswith(".")]
    for voice in voice_ids():
        rise = [one.final_movement for one in spoken("ask", asking, voice, 2)]
        fall = [one.final_movement for one in spoken("state", statements, voice)]
        report.figure(f"{voice}: questions, median", median(rise), "semitones", Bar(1))
        share = 100 * mean(value > 0 for value in rise)
        report.figure(f"{voice}: questions that rise", share, "%", Bar(80) if voice == DEFAULT else None)
        report.figure(f"{voice}: statements, median", median(fall), "semitones", Bar(most=0), median(person))
        report.figure(f"{voice}: questions above statements", median(rise) - median(fall), "semitones", Bar(3))
    search = [one.final_movement for one in spoken("search", searching)]
    report.figure(f"{DEFAULT}: questions with where, how, why ..., median", median(search), "semitones")


def measure_commas(report: Report) -> None:
    texts = [s.text for s in evaluation_sentences() if "," in s.text and s.text.endswith(".") and not s.is_short]
    report.heading("commas and lists: semitones of the last voiced 150 ms relative to the utterance's mean")
    voice = spoken("comma", texts, seeds=2)
    person = of_person()
    inner, persons_inner = ([end for one in some for end in one.inner_ends()] for some in (voice, person))
    final, persons_final = (median(one.final_fall for one in some) for some in (voice, person))
    persons_open = median(persons_inner) - persons_final if persons_inner else None
    report.note(f"{len(inner)} inner ends of the voice, {len(persons_inner)} of the person")
    report.figure("inner ends, median", median(inner), "semitones", None, median(persons_inner) if persons_inner else None)
    report.figure("last ends, median", final, "semitones", None, persons_final)
    report.figure("inner ends above last ends", median(inner) - final, "semitones", Bar(1), persons_open)
    slopes, opens = [], []
    for one in spoken("list", list(LISTS), seeds=SEEDS):
        items = item_pitches(one)
        if len(items) >= 3:
            slopes.append(float(np.polyfit(range(len(items)), items, 1)[0]))
            ends = one.inner_ends(0.04)
            opens.append(mean(ends) - one.final_fall if ends else items[0] - items[-1])
    report.figure("lists: step from item to item, median", median(slopes), "semitones", Bar(most=-0.2))
    report.figure("lists: inner ends above the last one, median", median(opens), "semitones", Bar(1.5))


def item_pitches(one: Utterance) -> list[float]:
    """Mean pitch between the pauses of an utterance."""
    items: list[list[float]] = [[]]
    for phone in one.phones:
        if phone.name == "pau":
            items.append([])
        else:
            part = one.pitch[phone.start : phone.end]
            items[-1] += list(part[~np.isnan(part)])
    return [float(np.mean(item)) for item in items if len(item) >= 10]


def measure_ends(report: Report) -> None:
    report.heading("phrase ends, over sentences and seeds, and two readings")
    person = first_takes()
    texts = [one.text for one in person]
    voice = spoken("fall", texts, seeds=2)
    person_spread = float(np.std([one.final_fall for one in person]))
    spread = float(np.std([one.final_fall for one in voice]))
    report.figure("final fall, spread over sentences and seeds", spread, "semitones", Bar(1.8), person_spread)
    report.figure("final fall, mean", mean(o.final_fall for o in voice), "semitones", None, mean(o.final_fall for o in person))
    seeds = spoken("seeds", texts[:10], seeds=6)
    groups = [seeds[start : start + 6] for start in range(0, len(seeds), 6)]
    within = mean(float(np.std([one.final_fall for one in group])) for group in groups)
    report.figure("final fall, spread over seeds of one sentence", within, "semitones")
    takes = pairs_of_takes()
    lengths, pitches = variety(list(zip(voice[::2], voice[1::2])))
    if takes:
        person_lengths, person_pitches = variety(takes)
        report.note(f"{len(takes)} pairs of takes of the person")
        bars = (Bar(0.6 * person_lengths, 1.4 * person_lengths), Bar(0.6 * person_pitches, 1.4 * person_pitches))
        report.figure("two readings: deviation of ln durations", lengths, "ln", bars[0], person_lengths)
        report.figure("two readings: deviation of the phones' F0", pitches, "semitones", bars[1], person_pitches)
    same = sum(len(a.signal) == len(b.signal) for a, b in zip(voice[::2], voice[1::2]))
    report.figure("pairs of readings of equal length in samples", same, "", Bar(most=0))


def measure_temperature(report: Report) -> None:
    report.heading("temperature: F0 span, and how much readings differ")
    texts = [one.text for one in first_takes()[:12]]
    spans, lengths, pitches = [], [], []
    for temperature in TEMPERATURES:
        readings = spoken(f"t{temperature:g}", texts, seeds=SEEDS, temperature=temperature)
        groups = [readings[start : start + SEEDS] for start in range(0, len(readings), SEEDS)]
        spans.append(mean(natural.f0_figures(one.f0)["F0 span"] for one in readings))
        pairs = [pair for group in groups for pair in zip(group, group[1:])]
        length, pitch = variety(pairs)
        lengths.append(length)
        pitches.append(pitch)
        seconds = mean(len(one.f0) * ROW / 24000 for one in readings)
        report.note(
            f"temperature {temperature:<4} F0 span {spans[-1]:5.2f} semitones, variety of durations {length:.3f},"
            f" of F0 {pitch:.2f} semitones, mean length {seconds:.2f} s"
        )
    falls = sum(b <= a for values in (lengths, pitches) for a, b in zip(values, values[1:]))
    report.figure("places where the variety does not rise", falls, "", Bar(most=0))
    report.figure("F0 span at 3, relative to 0.5", spans[-1] / spans[0], "", Bar(1.1))


def measure_lively(report: Report) -> None:
    measure_questions(report)
    measure_commas(report)
    measure_ends(report)
    measure_temperature(report)
