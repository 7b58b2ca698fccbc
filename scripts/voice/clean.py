"""Item 5: chunks, clicks, buzz, metallic fricatives, levels, peaks, beginnings and ends."""

import numpy as np
from numpy.typing import NDArray
from scipy import signal as processing

from engine import DEFAULT, Rendered, Request, raw_samples, render, voice_ids
from measures import ROW, SAMPLE_RATE, SILENCE_DB, active_level_db, leading_silence_seconds, level_db, levels_db, periodicity
from phonemes import phone_set
from report import Bar, Report
from seams import LONG_TEXT
from sentences import evaluation_texts
from utterances import WORK, Utterance, first_takes, of_voice
from wave_file import read_wave

Floats = NDArray[np.float64]
LONG_VOWEL_FRAMES = 12
HISSES = frozenset("s sh f th".split())
HISS_FRAMES = 7
LEVEL_SENTENCES = 40


def measure_chunks(report: Report) -> None:
    report.heading("decoded in short chunks or long ones")
    worst = 0.0
    for voice in voice_ids():
        for seed, text in ((3, evaluation_texts()[0]), (4, LONG_TEXT)):
            pair = [Request(f"{voice}-{seed}-{long}", voice, text, seed, long=long, raw=True) for long in (True, False)]
            long, short = (raw_samples(one) for one in render(pair, WORK / "chunks"))
            same = len(long) == len(short)
            worst = max(worst, float(np.abs(long - short).max()) if same else float("inf"))
    report.figure("largest difference of samples", worst, "", Bar(most=1e-4))


def roughness(signal: Floats, place: int) -> float:
    """The largest bend of the wave within 3 samples of a place, of the usual bend in the 20 ms around it."""
    around = signal[max(0, place - 240) : place + 240]
    near = signal[max(0, place - 4) : place + 4]
    usual = np.sqrt((np.diff(around, 2) ** 2).mean()) if len(around) > 10 else 0.0
    return float(np.abs(np.diff(near, 2)).max() / usual) if usual > 1e-5 and len(near) > 2 else 0.0


def measure_clicks(report: Report, voices: dict[str, list[Rendered]], long: dict[str, list[Rendered]]) -> None:
    """`long`: the same utterances in long chunks, whose boundaries are at other places."""
    report.heading("clicks: bend of the wave at chunk boundaries, of the usual bend around, beside random places")
    at_chunks: list[float] = []
    elsewhere: list[float] = []
    beyond = 0.0
    random = np.random.RandomState(1)
    for voice, rendered in voices.items():
        for one, same in zip(rendered, long[voice]):
            signal, other = (raw_samples(some).astype(np.float64) for some in (one, same))
            bends = [roughness(signal, place) for place in one.chunks]
            at_chunks += bends
            beyond = max([beyond] + [bend - roughness(other, place) for bend, place in zip(bends, one.chunks)])
            elsewhere += [roughness(signal, int(place)) for place in random.randint(300, len(signal) - 300, 10 * len(one.chunks))]
    report.note(f"{len(at_chunks)} boundaries, {len(elsewhere)} other places")
    if at_chunks:
        usual = float(np.percentile(elsewhere, 99))
        report.figure("99th percentile at boundaries", float(np.percentile(at_chunks, 99)), "", Bar(most=1.25 * usual), usual)
        report.figure("largest at boundaries", max(at_chunks), "", Bar(most=max(elsewhere)), max(elsewhere))
        # A plosive may begin at a boundary. But then it does so in the utterance that has none there, too.
        report.figure("largest beyond that of the same place within a long chunk", beyond, "", Bar(most=0.01))


def long_vowel_periodicity(utterances: list[Utterance]) -> Floats:
    """Mean of each band over the rows of vowels of 120 ms and longer."""
    vowels = phone_set(WORK).vowels
    rows = []
    for one in utterances:
        inside = np.zeros(len(one.f0), bool)
        for phone in one.phones:
            if phone.name in vowels and phone.frames >= LONG_VOWEL_FRAMES:
                inside[phone.start : phone.end] = True
        rows.append(periodicity(one.signal, np.where(inside, one.f0, 0)))
    return np.concatenate(rows).mean(0)


def hiss_figures(utterances: list[Utterance]) -> tuple[float, float]:
    """Of s, sh, f and th: how periodic the envelope of 4 to 11 kHz is at a voice's lags, and how ragged the spectrum is (dB)."""
    filters = processing.butter(6, [4000, 11000], "bandpass", fs=SAMPLE_RATE, output="sos")
    periodic, ragged = [], []
    window = np.hanning(480)
    for one in utterances:
        high = processing.sosfiltfilt(filters, one.signal.astype(np.float64))
        envelope = np.abs(processing.hilbert(high))
        for phone in one.phones:
            if phone.name not in HISSES or phone.frames < HISS_FRAMES:
                continue
            start, end = phone.start * ROW, phone.end * ROW
            margin = (end - start) // 6
            part = envelope[start + margin : end - margin]
            part = part - processing.savgol_filter(part, 241, 2) if len(part) > 241 else part - part.mean()
            correlation = np.correlate(part, part, "full")[len(part) - 1 :]
            counts = len(part) - np.arange(len(part))
            normal = correlation / counts / max(correlation[0] / len(part), 1e-20)
            periodic.append(float(normal[60:290].max()) if len(normal) > 400 else float("nan"))
            piece = high[start + margin : end - margin]
            frames = np.lib.stride_tricks.sliding_window_view(piece, 480)[::120] if len(piece) >= 480 else None
            if frames is not None:
                power = (np.abs(np.fft.rfft(frames * window, axis=1)) ** 2).mean(0)[80:220]
                decibels = 10 * np.log10(power + 1e-20)
                ragged.append(float((decibels - processing.savgol_filter(decibels, 31, 2)).std()))
    return float(np.nanmean(periodic)), float(np.mean(ragged))


def measure_noise(report: Report) -> None:
    report.heading("buzz in long vowels, metal in fricatives, on held-out sentences")
    person = [one for one in first_takes() if one.phones]
    persons_vowels = long_vowel_periodicity(person)
    persons_hiss = hiss_figures(person)
    texts = [one.text for one in person]
    for voice in voice_ids():
        asked = [Request(f"{voice}-{number:02d}", voice, text, number) for number, text in enumerate(texts[:30])]
        spoken = of_voice(render(asked, WORK / "noise"), 80 if voice.startswith(DEFAULT) else 55)
        vowels = long_vowel_periodicity(spoken)
        # A higher voice has fewer harmonics to be periodic with: the bar is the default's.
        bar = Bar(persons_vowels[2:5].mean() - 0.09, persons_vowels[2:5].mean() + 0.06) if voice == DEFAULT else None
        name = f"{voice}: periodicity of long vowels, 2 to 8 kHz"
        report.figure(name, float(vowels[2:5].mean()), "", bar, float(persons_vowels[2:5].mean()))
        periodic, ragged = hiss_figures(spoken)
        report.figure(f"{voice}: fricatives, periodic envelope", periodic, "", Bar(most=persons_hiss[0] + 0.08), persons_hiss[0])
        report.figure(f"{voice}: fricatives, ragged spectrum", ragged, "dB", Bar(most=persons_hiss[1] + 0.7), persons_hiss[1])


def measure_levels(report: Report, voices: dict[str, list[Rendered]]) -> None:
    report.heading("levels and peaks")
    levels = {}
    peak = 0.0
    for voice, rendered in voices.items():
        signals = [read_wave(one.wave)[0] for one in rendered]
        levels[voice] = active_level_db(np.concatenate(signals))
        peak = max([peak] + [float(np.abs(signal).max()) for signal in signals])
    report.note(", ".join(f"{voice} {level:.2f} dB" for voice, level in levels.items()))
    report.figure("loudest voice above the quietest", max(levels.values()) - min(levels.values()), "dB", Bar(most=1))
    report.figure("highest peak", 20 * np.log10(peak), "dBFS", Bar(most=-1))


def measure_edges(report: Report, voices: dict[str, list[Rendered]]) -> None:
    report.heading("beginnings and ends")
    silences, cuts = [], []
    for rendered in voices.values():
        for one in rendered:
            signal, rate = read_wave(one.wave)
            silences.append(1000 * leading_silence_seconds(signal, rate))
            cuts.append(float(levels_db(signal[-rate // 50 :], rate, 0.02)[-1]) - level_db(signal))
    report.figure("silence before the first sound, 95th percentile", float(np.percentile(silences, 95)), "ms", Bar(most=30))
    report.figure("silence before the first sound, longest", max(silences), "ms", Bar(most=60))
    report.figure("level of the file's last 20 ms, relative, highest", max(cuts), "dB", Bar(most=SILENCE_DB + 5))


def measure_clean(report: Report) -> None:
    texts = evaluation_texts()[:: len(evaluation_texts()) // LEVEL_SENTENCES][:LEVEL_SENTENCES]

    def spoken(voice: str, long: bool) -> list[Rendered]:
        asked = [Request(f"{voice}-{n}", voice, text, n, long=long, raw=True) for n, text in enumerate(texts)]
        return render(asked, WORK / ("long" if long else "clean"))

    voices, long_ones = ({voice: spoken(voice, long) for voice in voice_ids()} for long in (False, True))
    measure_chunks(report)
    measure_clicks(report, voices, long_ones)
    measure_levels(report, voices)
    measure_edges(report, voices)
    measure_noise(report)
