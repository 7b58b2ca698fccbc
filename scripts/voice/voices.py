"""The nine voices: what each one is made of. The first is the default."""

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Voice:
    id: str
    description: str
    sex: str  # for people who choose a voice
    mix: tuple[float, float, float, float]  # weights of model.SPEAKERS: kathleen, slt, rms, awb
    pitch: float = 1  # factor of F0
    warp: float = 1  # vocal tract: below 1 shorter, above 1 longer
    rate: float = 0.96  # pace: a little slower than the person reads, which is clearer
    liveliness: float = 1  # factor of F0 excursions about the mean, and of duration variety
    fine: float = 1  # share of what the engine does to fine structure: fine.py

    def manifest_entry(self, gain: float) -> dict[str, object]:
        return {**asdict(self), "mix": list(self.mix), "gain": gain}  # levels.py sets it

    def conversational(self, rate: float, liveliness: float) -> "Voice":
        description = f"{self.description.split(',')[0]}, conversational"
        return Voice(f"{self.id}_conv", description, self.sex, self.mix, self.pitch, self.warp, rate, liveliness, self.fine)


# The person's mean F0 is 159 Hz; slt has 171, rms 102 and awb 126.
# All voices have her melody; their mean F0 and range suit their vocal tract. The other speakers alone are less clear than
# mixed with her: pure rms has 13 % of words wrong, half of each 5 %. A shorter vocal tract makes lark another speaker. It costs
# words (11 % wrong), and a fifth of rms brings them back (6 %). Some awb makes wren clearer, and hardly less like the person.
# wren, lark, rook and heron are as far from each other as real people (speakers.py).
WREN = Voice("wren", "Clear alto, calm", "female", (0.8, 0.0, 0.0, 0.2))
LARK = Voice("lark", "Bright soprano, friendly", "female", (0.8, 0.0, 0.2, 0.0), 1.13, 0.9)
ROOK = Voice("rook", "Warm baritone, even", "male", (0.3, 0.0, 0.7, 0.0), 0.66)
HERON = Voice("heron", "Deep bass, steady", "male", (0.6, 0.0, 0.4, 0.0), 0.6, 1.08, 0.94, fine=0)
FINCH = Voice("finch", "Light tenor, brisk", "male", (0.6, 0.1, 0.0, 0.3), 0.9, 0.97, 0.98)
JAY = Voice("jay", "Dry tenor, plain", "male", (0.42, 0.0, 0.0, 0.58), 0.78, 1.03)

VOICES = (
    WREN,
    WREN.conversational(rate=1.03, liveliness=1.25),
    LARK,
    LARK.conversational(rate=1.03, liveliness=1.25),
    ROOK,
    ROOK.conversational(rate=1.05, liveliness=1.3),
    HERON,
    FINCH,
    JAY,
)
