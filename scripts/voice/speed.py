"""Item 6: speed and size."""

import json
from statistics import median

from engine import DEFAULT, MODEL, Request, render, voice_ids
from report import Bar, Report
from seams import LONG_TEXT
from sentences import evaluation_sentences
from utterances import WORK

STARTS = 5


def measure_speed(report: Report) -> None:
    report.heading("speed, one thread, warm")
    texts = [sentence.text for sentence in evaluation_sentences() if not sentence.is_short][:40]
    runs = [
        render([Request(f"{voice}-{number}", voice, text, number) for number, text in enumerate(texts)], WORK / "speed")
        for voice in voice_ids()[:STARTS]
    ]
    warm = [one for rendered in runs for one in rendered[3:]]
    factor = sum(one.compute_ms for one in warm) / 1000 / sum(one.seconds for one in warm)
    report.figure("real-time factor", factor, "", Bar(most=0.02))
    report.figure("first chunk, median", median(one.first_chunk_ms for one in warm), "ms", Bar(most=15))
    asked = [Request(f"first-{number}", DEFAULT, (texts[0], LONG_TEXT)[number % 2], number) for number in range(40)]
    firsts = [one.first_chunk_ms for one in render(asked, WORK / "speed")][10:]
    ratio = median(firsts[1::2]) / median(firsts[::2])
    report.figure("the same of a long text without punctuation, of that", ratio, "", Bar(most=1.5))
    report.figure(f"load, least of {STARTS} starts", min(rendered[0].load_ms for rendered in runs), "ms", Bar(most=400))
    files = json.loads((MODEL / "manifest.json").read_text(encoding="utf-8"))["files"]
    sizes = {name: entry["bytes"] / 1e6 for name, entry in files.items()}
    report.note("sizes: " + ", ".join(f"{name} {size:.2f} MB" for name, size in sizes.items()))
    report.figure("all models", sum(sizes.values()), "MB", Bar(most=20))
