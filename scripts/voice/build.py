#!/usr/bin/python3
"""Rebuilds the voice from a folder with the recordings: `scripts/voice/build.py FOLDER [--fresh]`; see README.md.

Each step leaves its results in work/, and a step that is done is not done again: `--fresh` starts over. work/build.log keeps
what the steps print.
"""

import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORK = HERE / "work"
REPOSITORY = HERE.parents[1]
NODE = REPOSITORY / "node_modules" / "node" / "bin" / "node"
DONE = WORK / "done"  # an empty file for each step

# Trainings take one core each. The decoder's last stage hears what the acoustic model predicts.
STEPS = (
    ("recordings.py",),  # and the folder
    ("analysis.py",),
    ("align.py",),
    ("teacher.py",),
    ("dataset.py",),
    ("acoustic.py", "first"),
    ("acoustic.py", "second"),
    ("acoustic.py", "third"),
    ("acoustic.py", "fourth"),
    ("decoder_training.py", "spectra"),
    ("decoder_training.py", "discriminators"),
    ("decoder_training.py", "predicted"),
)
ALWAYS = (("export.py",), ("levels.py",))


def run(command: list[str | Path]) -> None:
    """Prints what the command prints, and keeps it."""
    with open(WORK / "build.log", "a", encoding="utf-8") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)
        for line in process.stdout:
            print(line, end="", flush=True)
            log.write(line)
    if process.wait() != 0:
        sys.exit(f"{command[0]} failed with status {process.returncode}")


def run_step(step: tuple[str, ...], arguments: list[str]) -> None:
    started = time.monotonic()
    run([sys.executable, "-u", HERE / step[0], *step[1:], *arguments])
    run(["echo", f"{' '.join(step)}: {time.monotonic() - started:.0f} s"])


def main() -> None:
    folders = [argument for argument in sys.argv[1:] if argument != "--fresh"]
    if len(folders) != 1 or not (Path(folders[0]) / "metadata.csv").exists():
        sys.exit("usage: build.py FOLDER [--fresh]; FOLDER holds the recordings and metadata.csv")
    DONE.mkdir(parents=True, exist_ok=True)
    if "--fresh" in sys.argv:
        for path in DONE.iterdir():
            path.unlink()
        (WORK / "build.log").unlink(missing_ok=True)
    run([NODE, REPOSITORY / "scripts" / "build.mjs", "--if-stale"])  # its front end finds the phones
    for step in STEPS:
        done = DONE / "-".join(step)
        if not done.exists():
            run_step(step, [str(Path(folders[0]).resolve())] if step == STEPS[0] else [])
            done.touch()
    for step in ALWAYS:
        run_step(step, [])


if __name__ == "__main__":
    main()
