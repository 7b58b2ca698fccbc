#!/usr/bin/python3
"""Rebuilds the voice from a folder with the recordings: `scripts/voice/build.py FOLDER [--fresh] [--align]`; see README.md.

`--align` ends after the alignment and trains no voice: evaluate.py and listening_page.py need no more.

Each step leaves its results in work/, and a step that is done is not done again: `--fresh` starts over. work/build.log keeps
what the steps print.
"""

import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORK = HERE / "work"
REPOSITORY = HERE.parents[1]
NODE = REPOSITORY / "node_modules" / "node" / "bin" / "node"
DONE = WORK / "done"  # an empty file for each step

FIRST = (("recordings.py",), ("analysis.py",), ("align.py",))  # recordings.py gets the folder
# Two tracks, one core each.
TRACKS = (
    (
        ("teacher.py",),
        ("dataset.py",),
        ("acoustic.py", "first"),
        ("acoustic.py", "second"),
        ("acoustic.py", "third"),
        ("acoustic.py", "fourth"),
        ("acoustic.py", "fifth"),
    ),
    (("decoder_training.py", "spectra"), ("decoder_training.py", "discriminators")),
)
# The decoder hears what the acoustic model predicts.
LAST = (("decoder_training.py", "predicted"),)
ALWAYS = (("export.py",), ("levels.py",))


def run(command: list[str | Path], mark: str = "") -> None:
    """Prints what the command prints, each line after the mark, and keeps it."""
    with open(WORK / "build.log", "a", encoding="utf-8") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)
        for line in process.stdout:
            print(mark + line, end="", flush=True)
            log.write(mark + line)
            log.flush()
    if process.wait() != 0:
        raise RuntimeError(f"{mark}failed with status {process.returncode}")


def run_step(step: tuple[str, ...], arguments: tuple[str, ...] = ()) -> None:
    mark, started = f"{' '.join(step)}: ", time.monotonic()
    run([sys.executable, "-u", HERE / step[0], *step[1:], *arguments], mark)
    run(["echo", f"{time.monotonic() - started:.0f} s"], mark)


def run_track(track: tuple[tuple[str, ...], ...], arguments: tuple[str, ...] = ()) -> None:
    """Runs the steps that are not done."""
    for step in track:
        done = DONE / "-".join(step)
        if not done.exists():
            run_step(step, arguments)
            done.touch()
        arguments = ()


def run_tracks(tracks: tuple[tuple[tuple[str, ...], ...], ...]) -> None:
    """Side by side. A track that fails does not end the others: what they do is kept for the next run."""
    faults: list[RuntimeError] = []

    def run_one(track: tuple[tuple[str, ...], ...]) -> None:
        try:
            run_track(track)
        except RuntimeError as error:
            faults.append(error)

    threads = [threading.Thread(target=run_one, args=(track,)) for track in tracks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]


def main() -> None:
    options = {argument for argument in sys.argv[1:] if argument.startswith("--")}
    folders = [argument for argument in sys.argv[1:] if argument not in options]
    if len(folders) != 1 or not options <= {"--fresh", "--align"} or not (Path(folders[0]) / "metadata.csv").exists():
        sys.exit("usage: build.py FOLDER [--fresh] [--align]; FOLDER holds the recordings and metadata.csv")
    DONE.mkdir(parents=True, exist_ok=True)
    if "--fresh" in options:
        for path in DONE.iterdir():
            path.unlink()
        (WORK / "build.log").unlink(missing_ok=True)
    try:
        run([NODE, REPOSITORY / "scripts" / "build.mjs", "--if-stale"])  # its front end finds the phones
        run_track(FIRST, (str(Path(folders[0]).resolve()),))
        if "--align" in options:
            return
        run_tracks(TRACKS)
        run_track(LAST)
        for step in ALWAYS:
            run_step(step)
    except RuntimeError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
