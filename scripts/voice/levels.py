#!/usr/bin/python3
"""Brings the voices to one level: sets each one's `gain` in the manifest, from what the service's engine speaks.

Wants the built service (npm run build). To be run when the nets or a voice's mix or warp have changed; build.py does.
"""

import json
from pathlib import Path

import numpy as np

from corpus import evaluation_sentences
from engine import REPOSITORY, Request, raw_samples, render

MANIFEST = REPOSITORY / "models" / "syrinx-en" / "manifest.json"
WORK = Path(__file__).resolve().parent / "work"
SENTENCES = 8
TARGET = 0.1  # root mean square: -20 dB of full scale, which leaves room for the loudest vowels
MOST = 2.0


def spoken_level(voice: str) -> float:
    """Root mean square of the sound, the plain silence after it left out."""
    texts = [f"{text[0].upper()}{text[1:]}." for text in evaluation_sentences()[:SENTENCES]]
    requests = [Request(f"{voice}-{number}", voice, text, number, raw=True) for number, text in enumerate(texts)]
    sound = np.concatenate([raw_samples(one) for one in render(requests, WORK / "levels")]).astype(np.float64)
    return float(np.sqrt((sound[sound != 0] ** 2).mean()))


def level_voices() -> None:
    manifest = json.loads(MANIFEST.read_text(encoding="utf-8"))
    gains: dict[str, float] = {}
    for speaker in manifest["speakers"]:
        # A livelier or faster reading is no louder.
        timbre = json.dumps([speaker["mix"], speaker["warp"]])
        if timbre not in gains:
            gain = speaker["gain"] * TARGET / spoken_level(speaker["id"])
            gains[timbre] = round(min(MOST, max(1 / MOST, gain)), 3)
        speaker["gain"] = gains[timbre]
        print(f"{speaker['id']}: gain {speaker['gain']}", flush=True)
    MANIFEST.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    level_voices()
