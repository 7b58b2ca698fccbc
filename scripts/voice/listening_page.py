#!/usr/bin/python3
"""Writes work/page/listening.html: the person and the voice alternately, all voices, temperature, seams, questions, long text.

Wants what `build.py FOLDER --align` leaves in work/, and the built service. Neither recordings nor page are committed.
"""

import html
import shutil
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from engine import DEFAULT, Request, render, voice_ids
from measures import ROWS_PER_SECOND
from praat import pitch_tracks
from seams import COMMA_TEXT, LONG_TEXT
from utterances import FORMER, WORK, first_takes
from wave_file import read_wave

PAGE = WORK / "page"
STYLE = """body{font:16px/1.4 system-ui,sans-serif;margin:2rem;max-width:75rem}img,audio{width:100%}
figure{margin:0 0 2rem}section{display:grid;grid-template-columns:1fr 1fr;gap:0 2rem}h2,p{grid-column:1/-1}"""
ALTERNATE = 10
QUESTIONS = (
    "Are you ready?",
    "Did you find what you were looking for?",
    "Would you like tea, coffee, or a glass of water?",
    "Where were you last night?",
)
SHORT = ("Yes.", "Okay, thanks.", "Three.", "No, not today.", "Good morning!")
LONG = (
    "Every morning the old lighthouse keeper walked down to the harbor. He bought a loaf of bread, a newspaper, and two apples, "
    "and he always asked the same question. Was there any news from the islands? There never was. But on the first day of "
    "March, a small boat came in with a letter for him. He read it twice, smiled, and went home without a word."
)
SENTENCE = "I thought we would never get there, but the view was worth every step."


@dataclass
class Sample:
    title: str
    text: str
    wave: Path


def draw_spectrogram(wave: Path, image: Path, f0: np.ndarray, seams: list[int] | None = None) -> None:
    """0 to 12 kHz over time, with F0 (dots, its own scale) above it."""
    signal, rate = read_wave(wave)
    ratios = {"height_ratios": [1, 3]}
    figure, (upper, lower) = plt.subplots(2, 1, figsize=(12, 4.8), dpi=75, sharex=True, gridspec_kw=ratios)
    times = np.arange(len(f0)) / ROWS_PER_SECOND
    upper.plot(times[f0 > 0], f0[f0 > 0], ".", markersize=3)
    upper.set_ylim(50, 400)
    upper.set_ylabel("F0, Hz")
    quiet = np.random.RandomState(1).randn(len(signal)) * 1e-6  # digital silence has no logarithm
    lower.specgram(signal + quiet, NFFT=512, Fs=rate, noverlap=432, cmap="magma", vmin=-130, vmax=-45)
    for seam in seams or []:
        upper.axvline(seam / rate, color="red", linewidth=0.8)
    lower.set_ylim(0, min(12000, rate / 2))
    lower.set_ylabel("Hz")
    figure.tight_layout()
    figure.savefig(image)
    plt.close(figure)


def speak(title: str, requests: list[Request], titles: list[str]) -> tuple[list[Sample], dict[Path, list[int]]]:
    rendered = render(requests, PAGE / title)
    samples = [Sample(name, one.text, one.wave) for name, one in zip(titles, rendered)]
    return samples, {one.wave: one.seams for one in rendered}


def groups() -> tuple[dict[str, list[Sample]], dict[Path, list[int]]]:
    pages: dict[str, list[Sample]] = {}
    seams: dict[Path, list[int]] = {}

    def add(heading: str, folder: str, requests: list[Request], titles: list[str]) -> None:
        pages[heading], found = speak(folder, requests, titles)
        seams.update(found)

    person = first_takes()
    chosen = person[:: len(person) // ALTERNATE][:ALTERNATE]
    heading = "The person and the voice, on sentences kept out of training"
    add(heading, "held-out", [Request(f"{n}", DEFAULT, one.text, n) for n, one in enumerate(chosen)], [DEFAULT] * len(chosen))
    alternate = []
    for own, one in zip(pages[heading], chosen):
        copy = PAGE / "held-out" / f"person-{one.name}.wav"
        shutil.copyfile(one.wave, copy)
        alternate += [Sample("person", one.text, copy), own]
    pages[heading] = alternate
    waves = sorted((FORMER / "held-out").glob("*.wav"))
    if len(waves) == len(person):
        pages["The former voice"] = []
        for one in chosen[:4]:
            copy = PAGE / "held-out" / f"former-{one.name}.wav"
            shutil.copyfile(waves[person.index(one)], copy)
            pages["The former voice"].append(Sample("former", one.text, copy))
    voices = voice_ids()
    texts = (person[1].text, SENTENCE)
    add(
        "All voices",
        "voices",
        [Request(f"{voice}-{n}", voice, text, n) for voice in voices for n, text in enumerate(texts)],
        [voice for voice in voices for _ in texts],
    )
    copy = PAGE / "voices" / "person.wav"
    shutil.copyfile(person[1].wave, copy)
    pages["All voices"].insert(0, Sample("person", person[1].text, copy))
    degrees = (0.5, 0.5, 1, 1, 2, 2, 3, 3)
    requests = [Request(f"t{degree}-{n}", DEFAULT, SENTENCE, n, degree) for n, degree in enumerate(degrees)]
    add("Temperature, two readings each", "temperature", requests, [f"temperature {degree:g}" for degree in degrees])
    requests = [Request("cut", DEFAULT, LONG_TEXT), Request("uncut", DEFAULT, LONG_TEXT, uncut=True)]
    requests += [Request("early", DEFAULT, LONG_TEXT, early=True), Request("comma", DEFAULT, COMMA_TEXT)]
    titles = ["cut into segments (red lines)", "one segment", "as a WebSocket cuts it", "with commas"]
    add("Where segments meet", "seams", requests, titles)
    for heading, folder, some in (("Questions", "questions", QUESTIONS), ("Short utterances", "short", SHORT)):
        asked = [(voice, text) for text in some for voice in (DEFAULT, "rook")]
        requests = [Request(f"{voice}-{n}", voice, text, n) for n, (voice, text) in enumerate(asked)]
        add(heading, folder, requests, [voice for voice, _ in asked])
    both = [DEFAULT, f"{DEFAULT}_conv"]
    add("A long text", "long", [Request(voice, voice, LONG) for voice in both], both)
    return pages, seams


def write_page() -> None:
    shutil.rmtree(PAGE, ignore_errors=True)
    PAGE.mkdir(parents=True)
    pages, seams = groups()
    parts = [f"<!doctype html><meta charset=utf-8><title>syrinx-en</title><style>{STYLE}</style><h1>syrinx-en</h1>"]
    for heading, samples in pages.items():
        parts.append(f"<section><h2>{html.escape(heading)}</h2>")
        for sample, f0 in zip(samples, pitch_tracks([sample.wave for sample in samples])):
            image = sample.wave.with_suffix(".png")
            draw_spectrogram(sample.wave, image, f0, seams.get(sample.wave))
            source, picture = (html.escape(str(file.relative_to(PAGE))) for file in (sample.wave, image))
            caption = html.escape(f"{sample.title}: {sample.text}")
            parts.append(f'<figure><figcaption>{caption}</figcaption><audio controls preload=none src="{source}"></audio>')
            parts.append(f'<img loading=lazy src="{picture}" alt="spectrogram"></figure>')
        parts.append("</section>")
    figures = WORK / "figures.txt"
    if figures.exists():
        parts.append(f"<h2>Figures</h2><pre>{html.escape(figures.read_text(encoding='utf-8'))}</pre>")
    (PAGE / "listening.html").write_text("\n".join(parts), encoding="utf-8")
    print(PAGE / "listening.html")


if __name__ == "__main__":
    write_page()
