#!/usr/bin/python3
"""Recordings of other people: checks them, and brings them into one form.

    people.py FOLDER [ID...]     FOLDER holds the sources (SOURCES below); fills work/people/ID: 24 kHz FLAC, texts, cleaned waves,
                                 features, alignment. What is there is not made again.

A checkout may lack what this script does not read.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import hashlib
import html
import multiprocessing
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.signal
import soundfile

from align import align
from analysis import analyse_waves
from recordings import SAMPLE_RATE, WORK, clean_recordings, texts

# `git clone https://github.com/OWNER/NAME`, at this commit: the commit is the checksum of all its files.
SOURCES = {
    "dataset-voice-kerstin": ("rhasspy/dataset-voice-kerstin", "f73127135cf80d6ef52aef6af58c49774f4fd625"),
    "dataset-voice-flemishguy": ("rhasspy/dataset-voice-flemishguy", "2576e9c8e5b6eec92e45010b5ede87c4f836f21e"),
    "dataset-voice-nathalie": ("rhasspy/dataset-voice-nathalie", "3b3e91f39d13e2e681d8937575efb9bd3b3d8f5c"),
    "asp-audio": ("global-asp/asp-audio", "b2252fad7a657f2707901e7390ae0ae33e017968"),
    "asp-source": ("global-asp/asp-source", "99e022369a980bd52bce8c6f86d5f24e9a4ada9d"),
    "global-asp.github.io": ("global-asp/global-asp.github.io", "e8f7ed29e6ac9f20240dfae43bb34cde558bfebb"),
}
# `apt-get download festvox-ru`
RUSSIAN_PACKAGE = "festvox-ru_0.5+dfsg-6_all.deb"
RUSSIAN_SHA256 = "21ef3f0f2978ecf2e2eddb367cb0ff4a72572196d28dc69feb84f4177af5e6c4"
RUSSIAN_FOLDER = Path("usr/share/festival/voices/russian/msu_ru_nsh_clunits")

HELD_OUT_STEP = 17  # every so many files, by name: others judge by them
STORIES_HELD_OUT = ("0008", "0111", "0302")
PAGE = re.compile(r"<p>(?!<audio|<img)(.*?)</p>\s*<audio>\s*<source src=\"[^\"]*?/asp-audio/master/([^\"]+\.ogg)\"", re.DOTALL)


@dataclass(frozen=True)
class Recording:
    name: str
    path: Path
    text: str
    held_out: bool


@dataclass(frozen=True)
class Person:
    id: str
    language: str | None  # of espeak-ng; None: the phones of the English voice
    read: Callable[[Path, Path], list[Recording]]
    count: int  # recordings
    pitch_range: tuple[int, int]  # Hz
    highest_hz: int = 12000  # nothing was recorded above


def require_commit(folder: Path, name: str) -> Path:
    repository, commit = SOURCES[name]
    found = subprocess.run(["git", "-C", folder / name, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    if found != commit:
        sys.exit(f"{folder / name} is not at commit {commit}: git clone https://github.com/{repository}, then git checkout {commit}")
    # What this checkout has must be what the commit has; what it lacks does no harm.
    changed = subprocess.run(["git", "-C", folder / name, "diff", "--name-only", "--diff-filter=M"], capture_output=True, text=True)
    if changed.stdout:
        sys.exit(f"{folder / name} has changed files: {changed.stdout.splitlines()[0]}")
    return folder / name


def every_seventeenth(found: list[tuple[str, Path, str]]) -> list[Recording]:
    return [Recording(name, path, text, at % HELD_OUT_STEP == 0) for at, (name, path, text) in enumerate(sorted(found))]


def read_dataset(name: str, waves: str) -> Callable[[Path, Path], list[Recording]]:
    def read(folder: Path, _: Path) -> list[Recording]:
        root = require_commit(folder, name)
        lines = (root / "metadata.csv").read_text(encoding="utf-8").splitlines()
        said = dict(line.split("|", 1) for line in lines if "|" in line)
        paths = sorted(path for path in (root / waves).iterdir() if path.suffix in (".flac", ".wav") and path.stem in said)
        return every_seventeenth([(path.stem, path, said[path.stem].strip()) for path in paths])

    return read


def free_stories(folder: Path) -> set[str]:
    """Numbers of the stories that every list with a licence has as CC-BY. A recording has the licence of its story, whatever the language."""
    source = require_commit(folder, "asp-source")
    found: dict[str, set[str]] = {}
    for language in ("en", "fr"):
        readme = (source / language / "README.md").read_text(encoding="utf-8")
        stories = [(path.name[:4], path.read_text(encoding="utf-8")) for path in (source / language).glob("[0-9]*.md")]
        named = [(number, licence) for number, text in stories for licence in re.findall(r"License: \[(.+?)\]", text)]
        for number, licence in re.findall(r"^(\d{4}) \| .* \| \[(.+?)\]", readme, re.MULTILINE) + named:
            found.setdefault(number, set()).add(licence)
    return {number for number, licences in found.items() if licences == {"CC-BY"}}


def read_stories(language: str, reader: str) -> Callable[[Path, Path], list[Recording]]:
    """Pages of stories under CC-BY: the web pages say which track is which text."""

    def read(folder: Path, _: Path) -> list[Recording]:
        audio, site = require_commit(folder, "asp-audio"), require_commit(folder, "global-asp.github.io")
        free = free_stories(folder)
        found = []
        for page in sorted((site / "audio" / "asp" / language).glob("*.html")):
            if page.name[:4] not in free:
                continue
            content = page.read_text(encoding="utf-8")
            if f"<strong>Read by:</strong> {reader}<" not in content:
                continue
            for text, track in PAGE.findall(content):
                path = audio / html.unescape(track)
                plain = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())
                if path.exists() and plain:
                    found.append((f"{page.name[:4]}-{path.stem}", path, plain))
        if language == "en":
            return [Recording(name, path, text, name[:4] in STORIES_HELD_OUT) for name, path, text in found]
        return every_seventeenth(found)

    return read


def read_russian(folder: Path, target: Path) -> list[Recording]:
    package = folder / RUSSIAN_PACKAGE
    if not package.exists() or hashlib.sha256(package.read_bytes()).hexdigest() != RUSSIAN_SHA256:
        sys.exit(f"{package} is missing or another file: apt-get download festvox-ru")
    root = target / "package"
    if not root.exists():
        subprocess.run(["dpkg-deb", "-x", package, root], check=True)
    voice = root / RUSSIAN_FOLDER
    lines = (voice / "etc" / "txt.done.data").read_text(encoding="utf-8")
    said = dict(re.findall(r'^\(\s*(\S+)\s+"(.*)"\s*\)', lines, re.MULTILINE))
    # A + stands before a stressed vowel, which espeak-ng knows by an accent after it.
    paths = sorted(path for path in (voice / "wav").glob("*.wav") if path.stem in said)
    return every_seventeenth([(path.stem, path, re.sub(r"\+(\w)", "\\1\N{COMBINING ACUTE ACCENT}", said[path.stem])) for path in paths])


PEOPLE = {
    person.id: person
    for person in (
        Person("en-m", None, read_stories("en", "Darshan Soni"), 347, (60, 300)),
        Person("de-f", "de", read_dataset("dataset-voice-kerstin", "verified"), 1374, (90, 420)),
        Person("nl-be-m", "nl", read_dataset("dataset-voice-flemishguy", "wavs"), 1139, (70, 350)),
        Person("nl-f", "nl", read_dataset("dataset-voice-nathalie", "verified"), 1130, (90, 420)),
        Person("fr-f", "fr", read_stories("fr", "Alexandra Danahy"), 339, (90, 450)),
        Person("ru-m", "ru", read_russian, 620, (70, 350), 7600),
    )
}


def folder_of(person: Person, work: Path = WORK) -> Path:
    return work / "people" / person.id


def convert(task: tuple[Path, Path]) -> float:
    """To 24 kHz mono; returns the seconds."""
    samples, rate = soundfile.read(task[0], always_2d=True)
    mono = samples.mean(1)
    if rate != SAMPLE_RATE:
        divisor = int(np.gcd(rate, SAMPLE_RATE))
        mono = scipy.signal.resample_poly(mono, SAMPLE_RATE // divisor, rate // divisor)
    soundfile.write(task[1], mono * min(1, 0.99 / max(1e-6, np.abs(mono).max())), SAMPLE_RATE, subtype="PCM_16")
    return len(mono) / SAMPLE_RATE


def bring(person: Person, folder: Path) -> None:
    target = folder_of(person)
    (target / "source").mkdir(parents=True, exist_ok=True)
    found = person.read(folder, target)
    if len(found) != person.count:
        sys.exit(f"{person.id}: {len(found)} recordings, and not {person.count}")
    with multiprocessing.Pool(2) as pool:
        seconds = sum(pool.map(convert, [(one.path, target / "source" / f"{one.name}.flac") for one in found], chunksize=20))
    (target / "source" / "metadata.csv").write_text("".join(f"{one.name}|{one.text}\n" for one in found), encoding="utf-8")
    (target / "held-out.txt").write_text("".join(f"{one.name}\n" for one in found if one.held_out), encoding="utf-8")
    print(f"{person.id}: {len(found)} recordings, {seconds / 60:.1f} minutes, {sum(one.held_out for one in found)} held out", flush=True)


def prepare(person: Person, folder: Path) -> None:
    target = folder_of(person)
    if not (target / "source" / "metadata.csv").exists():
        bring(person, folder)
    if not (target / "cleaned").exists():
        clean_recordings(target / "source", target)
        (target / "cleaned").touch()
    if not (target / "analysed").exists():
        analyse_waves(list(texts(target)), "person", person.pitch_range, target)
        (target / "analysed").touch()
    if not (target / "alignment.jsonl").exists():
        align(target, person.language)


if __name__ == "__main__":
    for id in sys.argv[2:] or PEOPLE:
        prepare(PEOPLE[id], Path(sys.argv[1]))
