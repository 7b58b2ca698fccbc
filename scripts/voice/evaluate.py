#!/usr/bin/python3
"""Measures the voice through the service's own engine, prints each figure beside its bar, and writes work/page/listening.html.

`evaluate.py` wants what build.py left in work/, and the built service (npm run build). Exit status 1 if a bar is missed.
`--quick` leaves out the word error rates, which take most of the time.
"""

import json
import shutil
import sys
from pathlib import Path
from statistics import mean, median

import numpy as np

from corpus import evaluation_sentences, normalised
from engine import REPOSITORY, SAMPLE_RATE, Rendered, Request, raw_samples, render
from features import SPEAKERS
from listening_page import Sample, write_page
from measures import SILENCE_DB, leading_silence_seconds, level_db, levels_db, pitch_range_semitones, pitch_track
from recogniser import align, word_error_rate
from voices import VOICES, Voice
from wave_file import read_wave, write_wave

WORK = Path(__file__).resolve().parent / "work"
PAGE = WORK / "page"
MODEL = REPOSITORY / "models" / "syrinx-en"
DEFAULT = VOICES[0].id
TEMPERATURES = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
LONG_TEXT = (
    "the first thing that we did when we came home was to open all of the windows and then we sat down in the kitchen "
    "and talked about the journey until it was dark and nobody wanted to be the one who would get up and light the lamp "
    "so we went on talking in the dark about the people that we had met and the places that we would like to see again "
    "and about the old man with the boat who had told us that he had never in his life been farther than the next town"
)
COMMA_TEXT = LONG_TEXT.replace(" and ", ", and ").replace(" so we", ", so we").replace(" who ", ", who ") + "."


class Report:
    """Lines of figures, each with its bar; remembers whether one was missed."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.missed = 0

    def note(self, text: str) -> None:
        self.lines.append(text)
        print(text, flush=True)

    def figure(self, name: str, value: float, unit: str, most: float | None = None) -> None:
        passed = most is None or value <= most
        self.missed += not passed
        bar = "" if most is None else f"  (<= {most:g}: {'met' if passed else 'MISSED'})"
        self.note(f"{name:<58} {value:>10.4g} {unit}{bar}")


def as_sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def teacher_waves(speaker: str, count: int) -> list[Path]:
    return [WORK / f"teacher-{speaker}-{number + 1:03d}.wav" for number in range(count)]


def net_waves(sentences: list[str]) -> dict[str, list[Path]]:
    """The net without the service: its trained speakers, unmixed, on the phones of the teacher's front end."""
    from speak import Speaker

    speaker = Speaker(WORK)
    folder = WORK / "net"
    folder.mkdir(exist_ok=True)
    waves: dict[str, list[Path]] = {name: [] for name in SPEAKERS}
    for place, name in enumerate(SPEAKERS):
        pure = Voice(name, "", tuple(float(place == other) for other in range(3)))
        for number in range(len(sentences)):
            waves[name].append(folder / f"{name}-{number + 1:03d}.wav")
            write_wave(waves[name][-1], speaker.say(number, pure), SAMPLE_RATE)
    return waves


def measure_words(report: Report, sentences: list[str], voices: dict[str, list[Rendered]], net: dict[str, list[Path]]) -> None:
    assert set(sentences).isdisjoint(map(normalised, (WORK / "train.text").read_text().splitlines())), "trained on"
    report.note(f"-- word error rate, {len(sentences)} sentences never trained on")
    teacher = {name: word_error_rate(sentences, teacher_waves(name, len(sentences)))[0] for name in SPEAKERS}
    for name, rate in teacher.items():
        report.figure(f"teacher {name}", rate, "%")
    for name, waves in net.items():
        report.figure(f"net {name}, without the service", word_error_rate(sentences, waves)[0], "%", most=teacher[name] + 3)
    rates = []
    for name, rendered in voices.items():
        rates.append(word_error_rate(sentences, [one.wave for one in rendered])[0])
        report.figure(name, rates[-1], "%", most=5 if name == DEFAULT else 10)
    report.figure("mean of the voices", mean(rates), "%", most=8)


def measure_chunks(report: Report, sentences: list[str]) -> None:
    report.note("-- decoded in chunks or whole")
    worst = 0.0
    for voice in VOICES:
        for seed, text in ((3, as_sentence(sentences[0])), (4, LONG_TEXT)):
            pair = [Request(f"{voice.id}-{seed}-{whole}", voice.id, text, seed, whole=whole, raw=True) for whole in (True, False)]
            whole, chunked = (raw_samples(one) for one in render(pair, WORK / "chunks"))
            same = len(whole) == len(chunked)
            worst = max(worst, float(np.abs(whole - chunked).max()) if same else float("inf"))
    report.figure("largest difference of samples", worst, "", most=1e-5)


def pitch_step_semitones(track: np.ndarray, place: int) -> float | None:
    """Between the last voiced 50 ms before a 10 ms step and the first after it, if both are near."""
    before, after = track[max(0, place - 40) : place], track[place : place + 40]
    before, after = before[before > 0][-5:], after[after > 0][:5]
    if len(before) < 5 or len(after) < 5:
        return None
    return float(abs(12 * np.log2(np.median(after) / np.median(before))))


def pause_steps(one: Rendered, places: set[int]) -> tuple[list[float], list[float]]:
    """Steps of F0 (semitones) and energy (dB over 100 ms) at places, in steps of 10 ms."""
    signal, rate = read_wave(one.wave)
    track, loud = pitch_track(signal, rate), levels_db(signal, rate, 0.05)
    pitch = [step for place in sorted(places) if (step := pitch_step_semitones(track, place)) is not None]
    energy = [
        float(abs(loud[place // 5 + 1] - loud[place // 5 - 1])) for place in sorted(places) if 0 < place // 5 < len(loud) - 1
    ]
    return pitch, energy


def seam_words(one: Rendered) -> list[int]:
    """Numbers of the words that a seam follows."""
    ends = [word.end_seconds * SAMPLE_RATE for word in one.words]
    return [sum(end <= seam for end in ends) - 1 for seam in one.seams]


def measure_seams(report: Report) -> None:
    """A forced seam is held against commas, which it must not exceed, and against the same words in one segment."""
    report.note("-- where segments meet in long texts without punctuation, against commas, and against the same words uncut")
    words = LONG_TEXT.split()
    clicks: list[float] = []
    steps: dict[str, tuple[list[float], list[float]]] = {kind: ([], []) for kind in ("seam", "uncut", "comma")}
    # Texts that begin at other words are cut at other words.
    turned = [" ".join(words[start:] + words[:start]) for start in range(0, 40, 10)]
    jobs = [(voice.id, place) for voice in VOICES for place in range(len(turned))]
    plain = render([Request(f"seam-{voice}-{place}", voice, turned[place], place) for voice, place in jobs], WORK / "long")
    uncut = render(
        [Request(f"uncut-{voice}-{place}", voice, turned[place], place, uncut=True) for voice, place in jobs], WORK / "long"
    )
    for one, other in zip(plain, uncut):
        signal, _ = read_wave(one.wave)
        clicks += [float(abs(signal[seam] - signal[seam - 1]) / np.abs(signal).max()) for seam in one.seams]
        places = {seam * 100 // SAMPLE_RATE for seam in one.seams}
        same = {round(other.words[word].end_seconds * 100) for word in seam_words(one)}
        for kind, rendered, chosen in (("seam", one, places), ("uncut", other, same)):
            for all_steps, new in zip(steps[kind], pause_steps(rendered, chosen)):
                all_steps += new
    for one in render([Request(f"comma-{voice.id}", voice.id, COMMA_TEXT) for voice in VOICES], WORK / "long"):
        ends = {round(word.end_seconds * 100) for word in one.words if word.word.endswith(",")}
        for all_steps, new in zip(steps["comma"], pause_steps(one, ends)):
            all_steps += new
    report.note(f"{len(clicks)} seams, {len(steps['comma'][0])} commas")
    report.figure("largest jump of a sample at a seam, of the peak", max(clicks), "", most=0.01)
    for place, (name, unit) in enumerate((("F0", "semitones"), ("energy", "dB"))):
        usual = float(np.percentile(steps["comma"][place], 75))
        report.figure(f"{name} step at seams, median", median(steps["seam"][place]), unit, most=round(usual, 2))
        report.figure(f"{name} step between the same words uncut, median", median(steps["uncut"][place]), unit)
        report.figure(f"{name} step at seams, 90th percentile", float(np.percentile(steps["seam"][place], 90)), unit)
        report.figure(f"{name} step uncut, 90th percentile", float(np.percentile(steps["uncut"][place], 90)), unit)


def first_seams(name: str, texts: list[str], early: bool) -> dict[str, tuple[list[float], list[float]]]:
    """Steps of F0 and energy at the first seam of each text, by every voice, and at the same words uncut."""
    jobs = [(voice.id, number) for voice in VOICES for number in range(len(texts))]
    steps: dict[str, tuple[list[float], list[float]]] = {kind: ([], []) for kind in ("seam", "uncut")}
    cut = render([Request(f"{name}-{voice}-{n}", voice, texts[n], n, early=early) for voice, n in jobs], WORK / "early")
    whole = render([Request(f"{name}-uncut-{voice}-{n}", voice, texts[n], n, uncut=True) for voice, n in jobs], WORK / "early")
    for one, other in zip(cut, whole):
        if not one.seams:
            continue
        same = {round(other.words[seam_words(one)[0]].end_seconds * 100)}
        for kind, rendered, chosen in (("seam", one, {one.seams[0] * 100 // SAMPLE_RATE}), ("uncut", other, same)):
            for all_steps, new in zip(steps[kind], pause_steps(rendered, chosen)):
                all_steps += new
    return steps


def measure_early(report: Report) -> None:
    """The early end of a WebSocket's first segment, a few words into a clause, against a forced seam: each relative to uncut."""
    report.note("-- where the first segment of a WebSocket ends early, against forced seams, and the same words uncut")
    words = LONG_TEXT.split()
    turned = [words[start:] + words[:start] for start in range(0, len(words), 3)]
    kinds = {
        "forced": first_seams("forced", [" ".join(text[:26]) for text in turned], early=False),
        "early": first_seams("early", [" ".join(text[:14]) for text in turned], early=True),
    }
    for place, (name, unit) in enumerate((("F0", "semitones"), ("energy", "dB"))):
        rise = {}
        for kind, steps in kinds.items():
            seam, uncut = steps["seam"][place], steps["uncut"][place]
            rise[kind] = median(seam) - median(uncut)
            report.figure(f"{name} step, {kind}, median", median(seam), unit)
            report.figure(f"{name} step, {kind}, 90th percentile", float(np.percentile(seam, 90)), unit)
            report.figure(f"{name} step, the same words uncut, median", median(uncut), unit)
            report.figure(f"{name} step, the same words uncut, 90th percentile", float(np.percentile(uncut, 90)), unit)
        # Medians of 300 steps are this uncertain.
        noise = 0.3 if name == "F0" else 1.0
        report.figure(f"{name} step above uncut, early", rise["early"], unit, most=round(max(0, rise["forced"]) + noise, 2))


def measure_early_words(report: Report, sentences: list[str]) -> None:
    report.note("-- word error rate of three sentences in one clause: one segment, forced seams, early ends")
    texts = [" and ".join(sentences[start : start + 3]) for start in range(0, len(sentences), 3)]
    ways: dict[str, dict[str, bool]] = {"uncut": {"uncut": True}, "forced": {}, "early": {"early": True}}
    rates = {}
    for way, options in ways.items():
        heard = []
        for voice in VOICES[:3]:
            requests = [Request(f"{way}-{voice.id}-{n}", voice.id, text, n, **options) for n, text in enumerate(texts)]
            heard.append(word_error_rate(texts, [one.wave for one in render(requests, WORK / "early")])[0])
        rates[way] = mean(heard)
    for way in ("uncut", "forced"):
        report.figure(f"mean of three voices, {way}", rates[way], "%")
    report.figure("mean of three voices, early", rates["early"], "%", most=round(rates["forced"] + 1, 2))


def measure_edges(report: Report, voices: dict[str, list[Rendered]]) -> None:
    report.note("-- beginnings and ends")
    silences, firsts, lasts, cuts = [], [], [], []
    for rendered in voices.values():
        for one in rendered:
            signal, rate = read_wave(one.wave)
            own = level_db(signal)
            silences.append(1000 * leading_silence_seconds(signal, rate))
            start, end = int(one.words[0].start_seconds * rate), int(one.words[-1].end_seconds * rate)
            tenth = rate // 10
            firsts.append(own - levels_db(signal[start : start + tenth], rate, 0.01).max())
            lasts.append(own - levels_db(signal[max(0, end - tenth) : end], rate, 0.01).max())
            cuts.append(float(levels_db(signal[-rate // 50 :], rate, 0.02)[-1]) - own)
    # A final "th" is 30 dB below the vowels, and is meant to be.
    report.figure("silence before the first sound, longest", max(silences), "ms", most=30)
    report.figure("loudest of the first 100 ms below the sentence's level, most", max(firsts), "dB", most=-SILENCE_DB)
    report.figure("loudest of the last 100 ms below the sentence's level, most", max(lasts), "dB", most=-SILENCE_DB)
    report.figure("level of the file's last 20 ms, relative, highest", max(cuts), "dB", most=-30)


def measure_times(report: Report, sentences: list[str], rendered: list[Rendered]) -> None:
    report.note(f"-- word times of {DEFAULT} against forced alignment")
    errors = []
    aligned = 0
    for sentence, one in zip(sentences, rendered):
        heard = align(one.wave, sentence)
        said = [normalised(word.word) for word in one.words]
        if said == [word.word for word in heard]:
            aligned += 1
            errors += [abs(a.start_seconds - b.start_seconds) for a, b in zip(one.words, heard)]
            errors += [abs(a.end_seconds - b.end_seconds) for a, b in zip(one.words, heard)]
    report.note(f"{aligned} of {len(sentences)} sentences aligned, {len(errors)} times")
    report.figure("median error", 1000 * median(errors) if errors else float("inf"), "ms", most=40)
    report.figure("90th percentile", 1000 * float(np.percentile(errors, 90)) if errors else float("inf"), "ms")


def measure_temperature(report: Report, sentences: list[str]) -> None:
    report.note("-- temperature: F0 range, and how much the length of a word varies over 4 readings")
    ranges, varieties = [], []
    for temperature in TEMPERATURES:
        spans, spreads = [], []
        for number, sentence in enumerate(sentences[:12]):
            requests = [
                Request(f"t{temperature}-{number}-{seed}", DEFAULT, as_sentence(sentence), seed, temperature) for seed in range(4)
            ]
            readings = render(requests, WORK / "temperature")
            spans += [pitch_range_semitones(*read_wave(one.wave)) for one in readings]
            lengths = [[word.end_seconds - word.start_seconds for word in one.words] for one in readings]
            spreads.append(float(np.std(np.log(np.maximum(lengths, 0.01)), axis=0).mean()))
        ranges.append(mean(spans))
        varieties.append(mean(spreads))
        report.note(f"temperature {temperature:<4}  F0 range {ranges[-1]:5.2f} semitones   variety {100 * varieties[-1]:5.1f} %")
    falls = sum(b <= a for values in (ranges, varieties) for a, b in zip(values, values[1:]))
    report.figure("places where a curve does not rise", falls, "", most=0)
    first, second = render(
        [Request(f"twice-{seed}", DEFAULT, as_sentence(sentences[1]), seed) for seed in (11, 12)], WORK / "temperature"
    )
    report.figure("same sentence twice, equal byte counts (0 or 1)", float(first.samples == second.samples), "", most=0)


def measure_speed(report: Report, sentences: list[str], voices: dict[str, list[Rendered]]) -> None:
    report.note("-- speed, one thread, warm")
    everything = [one for rendered in voices.values() for one in rendered[3:]]
    speed = sum(one.compute_ms for one in everything) / 1000 / sum(one.seconds for one in everything)
    report.figure("real-time factor", speed, "", most=0.02)
    report.figure("first chunk, median", median(one.first_chunk_ms for one in everything), "ms", most=15)
    plain = as_sentence(sentences[0])
    requests = [Request(f"first-{number}", DEFAULT, (plain, LONG_TEXT)[number % 2], number) for number in range(40)]
    firsts = [one.first_chunk_ms for one in render(requests, WORK / "first")][10:]
    report.figure("the same of a long text without punctuation, of that", median(firsts[1::2]) / median(firsts[::2]), "", most=1.5)
    report.figure("load, least of nine starts", min(rendered[0].load_ms for rendered in voices.values()), "ms", most=400)
    sizes = {name: entry["bytes"] for name, entry in json.loads((MODEL / "manifest.json").read_text())["files"].items()}
    report.note("sizes: " + ", ".join(f"{name} {size / 1e6:.2f} MB" for name, size in sizes.items()))
    report.figure("whole voice", sum(sizes.values()) / 1e6, "MB", most=10)


def page_samples(sentences: list[str], voices: dict[str, list[Rendered]], net: dict[str, list[Path]]) -> dict[str, list[Sample]]:
    """The same three sentences by everybody, beside the page."""
    chosen = (2, 18, 53)
    groups: dict[str, list[Path]] = {f"teacher {name}": teacher_waves(name, len(sentences)) for name in SPEAKERS}
    groups |= {f"net {name}": waves for name, waves in net.items()}
    groups |= {voice.id: [one.wave for one in voices[voice.id]] for voice in VOICES}
    pages: dict[str, list[Sample]] = {}
    for title, waves in groups.items():
        pages[title] = []
        for number in chosen:
            copy = PAGE / f"{title.replace(' ', '-')}-{number + 1}.wav"
            shutil.copyfile(waves[number], copy)
            pages[title].append(Sample(title, sentences[number], copy))
    return pages


def main() -> int:
    sentences = evaluation_sentences()
    PAGE.mkdir(parents=True, exist_ok=True)
    report = Report()
    voices = {
        voice.id: render(
            [Request(f"{voice.id}-{number}", voice.id, as_sentence(text), number) for number, text in enumerate(sentences)],
            WORK / "voices",
        )
        for voice in VOICES
    }
    net = net_waves(sentences)
    measure_speed(report, sentences, voices)
    measure_edges(report, voices)
    measure_chunks(report, sentences)
    measure_seams(report)
    measure_early(report)
    measure_temperature(report, sentences)
    measure_times(report, sentences, voices[DEFAULT])
    if "--quick" not in sys.argv[1:]:
        measure_words(report, sentences, voices, net)
        measure_early_words(report, sentences)
    report.note(f"{report.missed} bars missed")
    write_page(page_samples(sentences, voices, net), "\n".join(report.lines), PAGE / "listening.html")
    return int(report.missed > 0)


if __name__ == "__main__":
    sys.exit(main())
