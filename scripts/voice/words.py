"""Item 3: is every word understood, is every short utterance whole, and are the word times right?"""

from statistics import mean, median

import numpy as np

from engine import DEFAULT, Rendered, Request, render, voice_ids
from measures import SAMPLE_RATE, levels_db
from recogniser import align, word_error_rate
from report import Bar, Report
from sentences import evaluation_sentences, evaluation_texts, normalised
from utterances import FORMER, PAUSE, WORK, Utterance, first_takes, of_voice

HOT = 2.0  # a high temperature that must stay clear
# The default voice is read several times with other seeds: by chance alone one reading is off by 0.6 points (one deviation).
READINGS = 12
SEEDS_APART = 1000
# How far below the utterance's loudest 10 ms a first or last sound may be, in dB.
FAINTEST_DB = {"vowel": 24.0, "sonorant": 28.0, "fricative": 38.0, "stop": 40.0}
SONORANTS = frozenset("l m n ng r w y".split())
FRICATIVES = frozenset("dh f hh s sh th v z zh".split())
STOPS = frozenset("b ch d g jh k p t".split())


def requests(voice: str, readings: int = 1, temperature: float = 1) -> list[Request]:
    """All evaluation sentences, then again with other seeds."""
    return [
        Request(f"{voice}-t{temperature:g}-{reading}-{number:03d}", voice, text, SEEDS_APART * reading + number, temperature)
        for reading in range(readings)
        for number, text in enumerate(evaluation_texts())
    ]


def spoken(voice: str, readings: int = 1, temperature: float = 1) -> list[Rendered]:
    return render(requests(voice, readings, temperature), WORK / "words")


def sound_class(phone: str) -> str:
    if phone in SONORANTS:
        return "sonorant"
    if phone in FRICATIVES:
        return "fricative"
    return "stop" if phone in STOPS else "vowel"


def edge_levels(one: Utterance) -> list[tuple[str, float]]:
    """First and last phone, each with its loudest 5 ms below the utterance's loudest."""
    phones = [phone for phone in one.phones if phone.name != PAUSE]
    if not phones:
        return [("nothing", 99.0)] * 2
    levels = levels_db(one.signal, SAMPLE_RATE, 0.005)
    edges = []
    for phone in (phones[0], phones[-1]):
        # A stop is heard when it opens, which the next phone may own.
        part = levels[max(0, phone.start) : phone.end + 2]
        edges.append((phone.name, float(levels.max() - part.max()) if len(part) else 99.0))
    return edges


def measure_short(report: Report, voices: dict[str, list[Rendered]]) -> None:
    short = [number for number, sentence in enumerate(evaluation_sentences()) if sentence.is_short]
    report.heading(f"short utterances: {len(short)} by each voice, level of the first and last sound below the loudest")
    worst: dict[str, float] = dict.fromkeys(FAINTEST_DB, 0.0)
    person: dict[str, float] = dict.fromkeys(FAINTEST_DB, 0.0)
    faint = []
    for voice, rendered in voices.items():
        for one in of_voice([rendered[number] for number in short]):
            for phone, below in edge_levels(one):
                kind = sound_class(phone)
                worst[kind] = max(worst[kind], below)
                if below > FAINTEST_DB[kind]:
                    faint.append(f"{voice} {one.text!r}: {phone} {below:.0f} dB")
    for one in first_takes():
        for phone, below in edge_levels(one) if one.phones else []:
            person[sound_class(phone)] = max(person[sound_class(phone)], below)
    for kind, most in FAINTEST_DB.items():
        report.figure(f"faintest {kind}", worst[kind], "dB", Bar(most=most), person[kind])
    for line in faint[:12]:
        report.note(f"   {line}")


def measure_errors(report: Report, voices: dict[str, list[Rendered]]) -> None:
    sentences = evaluation_sentences()
    transcripts = [sentence.words for sentence in sentences]
    report.heading(f"word error rate over {len(sentences)} sentences never trained on")
    former = sorted((FORMER / "words").glob("*.wav"))
    before = None
    if len(former) == READINGS * len(sentences):
        before, _ = word_error_rate(READINGS * transcripts, former)
        report.figure(f"{DEFAULT}, former version", before, "%")
    rates = {}
    short = [number for number, sentence in enumerate(sentences) if sentence.is_short]
    for voice, rendered in voices.items():
        waves = [one.wave for one in rendered]
        rates[voice], heard = word_error_rate(len(waves) // len(sentences) * transcripts, waves)
        (WORK / f"heard-{voice}.txt").write_text(
            "\n".join(f"{'  ' if answer in words else '! '}{words[0]} | {answer}" for words, answer in zip(transcripts, heard)),
            encoding="utf-8",
        )
        report.figure(voice, rates[voice], "%", Bar(most=5 if voice == DEFAULT else 9))
        if voice == DEFAULT:
            if before is not None:
                report.figure(f"{voice}, above the former version", rates[voice] - before, "%", Bar(most=1.5))
            rate, _ = word_error_rate([transcripts[n] for n in short], [waves[n] for n in short])
            report.figure(f"{voice}, short utterances only", rate, "%")
    report.figure("mean of the voices", mean(rates.values()), "%", Bar(most=6.5) if len(rates) > 1 else None)
    hot, _ = word_error_rate(transcripts, [one.wave for one in spoken(DEFAULT, temperature=HOT)])
    report.figure(f"{DEFAULT} at temperature {HOT:g}, above temperature 1", hot - rates[DEFAULT], "%", Bar(most=2))


def measure_cut_words(report: Report) -> None:
    """Three sentences joined to one clause, cut in different ways."""
    report.heading("word error rate of three sentences in one clause: one segment, forced seams, early ends")
    plain = [s.words[0] for s in evaluation_sentences() if not s.is_question and not s.is_short][:60]
    texts = [" and ".join(plain[start : start + 3]) for start in range(0, len(plain), 3)]
    rates = {}
    for way, options in (("uncut", {"uncut": True}), ("forced", {}), ("early", {"early": True})):
        asked = [Request(f"{way}-{n}", DEFAULT, text, n, **options) for n, text in enumerate(texts)]
        rates[way], _ = word_error_rate([(text,) for text in texts], [one.wave for one in render(asked, WORK / "early")])
    report.figure("uncut", rates["uncut"], "%")
    report.figure("forced", rates["forced"], "%")
    report.figure("early", rates["early"], "%", Bar(most=round(rates["forced"] + 1, 2)))


def measure_times(report: Report, rendered: list[Rendered]) -> None:
    report.heading(f"word times of {DEFAULT} against forced alignment")
    errors: list[float] = []
    aligned = 0
    some = [(s, one) for s, one in zip(evaluation_sentences(), rendered) if not s.is_short][:60]
    for sentence, one in some:
        heard = align(one.wave, sentence.words[0])
        if [normalised(word.word) for word in one.words] == [word.word for word in heard]:
            aligned += 1
            errors += [abs(a.start_seconds - b.start_seconds) for a, b in zip(one.words, heard)]
            errors += [abs(a.end_seconds - b.end_seconds) for a, b in zip(one.words, heard)]
    report.note(f"{aligned} of {len(some)} sentences aligned, {len(errors)} times")
    report.figure("median error", 1000 * median(errors) if errors else float("inf"), "ms", Bar(most=40))
    report.figure("90th percentile", 1000 * float(np.percentile(errors, 90)) if errors else float("inf"), "ms")


def measure_words(report: Report, only_default: bool = False) -> None:
    names = [DEFAULT] if only_default else voice_ids()
    voices = {name: spoken(name, READINGS if name == DEFAULT else 1) for name in names}
    measure_errors(report, voices)
    measure_short(report, voices)
    measure_times(report, voices[DEFAULT])
    if not only_default:
        measure_cut_words(report)
