#!/usr/bin/python3
"""Measures the voice through the service's own engine, and prints each figure beside its bar and the person's.

    evaluate.py                       everything; exit status 1 if a bar is missed
    evaluate.py natural words ...     some parts: natural, classifier, speakers, words, lively, clean, seams, speed
    evaluate.py words:default         word error rate of the default voice only
    BUILD=FOLDER evaluate.py keep     keeps what a former version speaks (FOLDER: its dist), to compare with

Wants what `build.py FOLDER --align` leaves in work/, and the built service (npm run build). The figures are also written to
work/figures.txt.
"""

import os
import shutil
import sys
from collections.abc import Callable
from functools import lru_cache, partial

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import classifier
import natural
from clean import measure_clean
from engine import DEFAULT, Rendered, Request, render
from lively import measure_lively
from recordings import held_out, texts
from report import Bar, Report
from seams import measure_seams
from sentences import evaluation_texts, normalised
from speakers import measure_speakers
from speed import measure_speed
from utterances import FORMER, WORK, first_takes, held_out_texts
from words import READINGS, measure_words, requests


def held_out_requests() -> list[Request]:
    said = texts(WORK)
    names = [name for name in held_out(WORK) if name in set(held_out_texts().values())]
    return [Request(f"held-out-{n:02d}", DEFAULT, said[name], n) for n, name in enumerate(names)]


@lru_cache(maxsize=1)
def held_out_spoken() -> list[Rendered]:
    return render(held_out_requests(), WORK / "held-out")


def measure_natural(report: Report) -> None:
    person = first_takes()
    spoken = held_out_spoken()
    report.heading(f"natural: {DEFAULT} beside the person on {len(person)} held-out sentences")
    persons = natural.figures_of([one.wave for one in person])
    natural.compare(report, natural.figures_of([one.wave for one in spoken]), persons, with_bars=True)
    if all(one.phones for one in spoken):
        own = natural.duration_spread([[(p.phone, 100 * p.seconds) for p in one.phones] for one in spoken])
        persons_own = natural.duration_spread([one.lengths for one in person])
        report.figure("deviation of ln duration within a phone", own, "ln", Bar(0.5), persons_own)
    former = sorted((FORMER / "held-out").glob("*.wav"))
    if len(former) == len(person):
        report.heading(f"the same of the former {DEFAULT}")
        natural.compare(report, natural.figures_of(former), persons, with_bars=False)


def measure_classifier(report: Report) -> None:
    report.heading("a classifier tells the voice from the person on unseen sentences (50 % is chance; aim: 75 %)")
    person = [one.wave for one in first_takes()]
    former = sorted((FORMER / "held-out").glob("*.wav"))
    if len(former) == len(person):
        report.figure(f"former {DEFAULT}", classifier.accuracy(person, former), "% right")
    report.figure(DEFAULT, classifier.accuracy(person, [one.wave for one in held_out_spoken()]), "% right")


def keep() -> None:
    """Keeps the waves of the default voice."""
    shutil.rmtree(FORMER, ignore_errors=True)
    render(held_out_requests(), FORMER / "held-out")
    render(requests(DEFAULT, READINGS), FORMER / "words")


PARTS: dict[str, Callable[[Report], None]] = {
    "natural": measure_natural,
    "classifier": measure_classifier,
    "speakers": measure_speakers,
    "lively": measure_lively,
    "clean": measure_clean,
    "seams": measure_seams,
    "speed": measure_speed,
    "words": measure_words,
}
SHORTCUTS = {"words:default": partial(measure_words, only_default=True)}


def main(names: list[str]) -> int:
    if names == ["keep"]:
        keep()
        return 0
    if not (WORK / "alignment.jsonl").exists():
        sys.exit("work/ lacks the aligned recordings: run build.py FOLDER --align first (a few minutes, no training of the voice)")
    trained_on = {normalised(text) for text in texts(WORK).values()}
    assert trained_on.isdisjoint(map(normalised, evaluation_texts())), "an evaluation sentence was recorded"
    report = Report()
    for name in names or PARTS:
        (PARTS | SHORTCUTS)[name](report)
    report.summary()
    (WORK / "figures.txt").write_text("\n".join(report.lines) + "\n", encoding="utf-8")
    return int(bool(report.missed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
