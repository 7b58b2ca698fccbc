#!/usr/bin/python3
"""Brings the voices to one level: sets each one's `gain` in the manifest, from what the service's engine speaks.

Wants the built service (npm run build). To be run when the nets or a voice's mix, pitch, warp or fine have changed; build.py does.
"""

import json
from pathlib import Path

import numpy as np

from engine import REPOSITORY, Request, raw_samples, render
from measures import active_level_db
from sentences import evaluation_texts

MANIFEST = REPOSITORY / "models" / "syrinx-en" / "manifest.json"
WORK = Path(__file__).resolve().parent / "work"
SENTENCES = 16
TARGET_DB = -20.0  # of full scale, where there is speech
PEAK_MAX_DB = -2.5  # other texts have higher peaks than these
LEAST_DB, MOST_DB = -12.0, 12.0  # of a gain


def level_and_peak_db(voice: str) -> tuple[float, float]:
    texts = evaluation_texts()[:SENTENCES]
    requests = [Request(f"{voice}-{number}", voice, text, number, raw=True) for number, text in enumerate(texts)]
    sound = np.concatenate([raw_samples(one) for one in render(requests, WORK / "levels")]).astype(np.float64)
    return active_level_db(sound), float(20 * np.log10(np.abs(sound).max()))


def level_voices() -> None:
    manifest = json.loads(MANIFEST.read_text(encoding="utf-8"))
    changes: dict[str, float] = {}
    peaks: list[float] = []
    for speaker in manifest["speakers"]:
        # A livelier or faster reading is no louder.
        timbre = json.dumps([speaker[part] for part in ("mix", "pitch", "warp", "fine")])
        if timbre not in changes:
            level, peak = level_and_peak_db(speaker["id"])
            changes[timbre] = TARGET_DB - level
            peaks.append(peak + changes[timbre])
        speaker["change"] = changes[timbre]
    common = min(0.0, PEAK_MAX_DB - max(peaks))
    for speaker in manifest["speakers"]:
        gain_db = 20 * np.log10(speaker["gain"]) + speaker.pop("change") + common
        speaker["gain"] = round(float(10 ** (min(MOST_DB, max(LEAST_DB, gain_db)) / 20)), 3)
        print(f"{speaker['id']}: gain {speaker['gain']}")
    print(f"level {TARGET_DB + common:.1f} dB, highest sample {max(peaks) + common:.1f} dB", flush=True)
    MANIFEST.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    level_voices()
