"""A page to listen with: players and spectrograms of teacher, net and voices."""

import html
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from measures import pitch_track
from wave_file import read_wave

STYLE = """body{font:16px/1.4 system-ui,sans-serif;margin:2rem;max-width:75rem}img{width:100%}
figure{margin:0 0 2rem}section{display:grid;grid-template-columns:1fr 1fr;gap:0 2rem}h2{grid-column:1/-1}"""


@dataclass
class Sample:
    title: str
    text: str
    wave: Path


def draw_spectrogram(wave: Path, image: Path) -> None:
    """0 to 12 kHz over time, with F0 (dots, its own scale) above it."""
    signal, rate = read_wave(wave)
    figure, (upper, lower) = plt.subplots(2, 1, figsize=(11, 4.6), dpi=80, sharex=True, gridspec_kw={"height_ratios": [1, 3]})
    track = pitch_track(signal, rate)
    times = np.arange(len(track)) * 0.01 + 0.0225
    upper.plot(times[track > 0], track[track > 0], ".", markersize=3)
    upper.set_ylim(50, 350)
    upper.set_ylabel("F0, Hz")
    quiet = np.random.RandomState(1).randn(len(signal)) * 1e-6  # digital silence has no logarithm
    lower.specgram(signal + quiet, NFFT=512, Fs=rate, noverlap=448, cmap="magma", vmin=-140, vmax=-40)
    lower.set_ylim(0, min(12000, rate / 2))
    lower.set_ylabel("Hz")
    figure.tight_layout()
    figure.savefig(image)
    plt.close(figure)


def write_page(groups: dict[str, list[Sample]], report: str, path: Path) -> None:
    parts = [f"<!doctype html><meta charset=utf-8><title>syrinx-en</title><style>{STYLE}</style><h1>syrinx-en</h1>"]
    for title, samples in groups.items():
        parts.append(f"<section><h2>{html.escape(title)}</h2>")
        for sample in samples:
            image = sample.wave.with_suffix(".png")
            draw_spectrogram(sample.wave, image)
            source = html.escape(str(sample.wave.relative_to(path.parent)))
            picture = html.escape(str(image.relative_to(path.parent)))
            caption = html.escape(f"{sample.title}: {sample.text}")
            parts.append(f'<figure><figcaption>{caption}</figcaption><audio controls preload=none src="{source}"></audio>')
            parts.append(f'<img loading=lazy src="{picture}" alt="spectrogram"></figure>')
        parts.append("</section>")
    parts.append(f"<h2>Figures</h2><pre>{html.escape(report)}</pre>")
    path.write_text("\n".join(parts), encoding="utf-8")
