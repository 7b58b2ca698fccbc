#!/usr/bin/python3
"""Rebuilds the voice: corpus, teacher, training, export, levels. `scripts/voice/build.py` from anywhere; see README.md.

Each step leaves its result in work/, and a step whose result is there is not done again: `--fresh` starts over.
"""

import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORK = HERE / "work"
REPOSITORY = HERE.parents[1]
MODEL = REPOSITORY / "models" / "syrinx-en"
FLITE_LIBRARIES = ["flite_cmu_us_slt", "flite_cmu_us_rms", "flite_cmu_us_awb", "flite_usenglish", "flite_cmulex", "flite", "m"]


def build_texts() -> None:
    from corpus import evaluation_sentences, training_sentences
    from lexicon import write_lexicon

    training = training_sentences()
    evaluation = [f"{sentence[0].upper()}{sentence[1:]}." for sentence in evaluation_sentences()]
    (WORK / "train.text").write_text("\n".join(training) + "\n", encoding="ascii")
    (WORK / "eval.text").write_text("\n".join(evaluation) + "\n", encoding="ascii")
    count = write_lexicon(training + evaluation, WORK / "lexicon.txt")
    print(f"{len(training)} training sentences, {count} pronunciations", flush=True)


def ask_teacher() -> None:
    from features import SPEAKERS

    libraries = [f"-l{name}" for name in FLITE_LIBRARIES]
    subprocess.run(["gcc", "-O2", "-Wall", "-o", WORK / "teacher", HERE / "teacher.c", *libraries], check=True)
    for voice in SPEAKERS:
        for part in ("eval", "train"):
            print(f"teacher {voice}, {part}", flush=True)
            waves = [WORK / f"teacher-{voice}"] if part == "eval" else []
            files = [WORK / f"{part}.text", WORK / "lexicon.txt", WORK / f"{part}-{voice}"]
            # flite reports every sentence; what matters shows in the exit status.
            subprocess.run([WORK / "teacher", voice, *files, *waves], check=True, stderr=subprocess.DEVNULL)
    (WORK / "teacher.done").touch()


def train_nets() -> None:
    from train import train

    train(WORK)
    (WORK / "train.done").touch()


def export() -> None:
    from export import export_voice

    export_voice(WORK, MODEL)


def level() -> None:
    from engine import NODE
    from levels import level_voices

    subprocess.run([NODE, REPOSITORY / "scripts" / "build.mjs", "--if-stale"], check=True)
    level_voices()


def main() -> None:
    if "--fresh" in sys.argv[1:]:
        shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(exist_ok=True)
    if not (WORK / "lexicon.txt").exists():
        build_texts()
    if not (WORK / "teacher.done").exists():
        ask_teacher()
    if not (WORK / "train.done").exists():
        train_nets()
    export()
    level()


if __name__ == "__main__":
    main()
