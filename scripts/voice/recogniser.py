"""pocketsphinx: what was said (word error rate), and when (forced alignment)."""

import hashlib
import json
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

MODEL = Path("/usr/share/pocketsphinx/model/en-us")
ACOUSTIC = ["-hmm", str(MODEL / "en-us"), "-dict", str(MODEL / "cmudict-en-us.dict"), "-logfn", "/dev/null"]
HEARD = Path(__file__).resolve().parent / "work" / "heard.json"  # answers by content: recognition takes long
PAD_SECONDS = 0.2  # the recogniser wants some silence around a short utterance


@dataclass
class SpokenWord:
    word: str
    start_seconds: float
    end_seconds: float


def to_16_khz(source: Path, target: Path, pad_seconds: float = 0) -> None:
    """The acoustic model wants 16 kHz."""
    pad = ["pad", str(pad_seconds), str(pad_seconds)] if pad_seconds else []
    subprocess.run(["sox", "-G", str(source), "-r", "16000", "-c", "1", "-b", "16", str(target), *pad], check=True)


def recognise_now(waves: list[Path]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        names = [f"{number:04d}" for number in range(len(waves))]
        for name, wave in zip(names, waves):
            to_16_khz(wave, Path(folder, f"{name}.wav"), PAD_SECONDS)
        control, heard = Path(folder, "control"), Path(folder, "heard")
        control.write_text("\n".join(names) + "\n", encoding="ascii")
        files = ["-cepdir", folder, "-cepext", ".wav", "-ctl", str(control), "-hyp", str(heard)]
        language = ["-lm", str(MODEL / "en-us.lm.bin")]
        subprocess.run(["pocketsphinx_batch", "-adcin", "yes", *files, *language, *ACOUSTIC], check=True, capture_output=True)
        lines = heard.read_text(encoding="utf-8").splitlines()
    # A line is "words (name score)"; variants of a word are marked "word(2)".
    return [re.sub(r"\(\d\)", "", line.rpartition("(")[0]).strip() for line in lines]


def known_answers() -> dict[str, str]:
    return json.loads(HEARD.read_text(encoding="utf-8")) if HEARD.exists() else {}


def recognise(waves: list[Path]) -> list[str]:
    """The words heard in each file (any sample rate)."""
    known = known_answers()
    keys = [hashlib.sha1(wave.read_bytes()).hexdigest() for wave in waves]
    new = {key: wave for key, wave in zip(keys, waves) if key not in known}
    if new:
        answers = dict(zip(new, recognise_now(list(new.values()))))
        # Another process may have added some meanwhile.
        known = known_answers() | answers
        HEARD.write_text(json.dumps(known, indent=0), encoding="utf-8")
    return [known[key] for key in keys]


def word_errors(said: str, heard: str) -> int:
    """The least number of words replaced, left out or put in."""
    reference, hypothesis = said.split(), heard.split()
    row = list(range(len(hypothesis) + 1))
    for i, word in enumerate(reference, 1):
        above, row = row, [i]
        for j, other in enumerate(hypothesis, 1):
            row.append(min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (word != other)))
    return row[-1]


def word_error_rate(transcripts: list[tuple[str, ...]], waves: list[Path]) -> tuple[float, list[str]]:
    """Per cent over all sentences, and what was heard. Of several transcripts, the nearest counts."""
    heard = recognise(waves)
    errors = sum(min(word_errors(words, answer) for words in allowed) for allowed, answer in zip(transcripts, heard))
    return 100 * errors / sum(len(allowed[0].split()) for allowed in transcripts), heard


def align(wave: Path, sentence: str) -> list[SpokenWord]:
    """When each word of the sentence was said, by forced alignment; empty where the aligner gives up."""
    with tempfile.TemporaryDirectory() as folder:
        audio, grammar = Path(folder, "audio.wav"), Path(folder, "sentence.jsgf")
        to_16_khz(wave, audio)
        grammar.write_text(f"#JSGF V1.0;\ngrammar s;\npublic <s> = {sentence};\n", encoding="ascii")
        options = ["-infile", str(audio), "-jsgf", str(grammar), "-time", "yes", "-beam", "1e-80", "-wbeam", "1e-60"]
        # Best-path search would make "the words" out of the lattice, without their times.
        answer = subprocess.run(
            ["pocketsphinx_continuous", *options, "-bestpath", "no", *ACOUSTIC], capture_output=True, text=True, check=True
        )
    words = []
    for line in answer.stdout.splitlines():
        match = re.fullmatch(r"(\S+?)(?:\(\d\))? ([\d.]+) ([\d.]+) [\d.]+", line.strip())
        if match and not match[1].startswith("<"):
            words.append(SpokenWord(match[1], float(match[2]), float(match[3])))
    return words if [spoken.word for spoken in words] == sentence.split() else []
