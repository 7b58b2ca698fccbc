"""The nine voices: what each one is made of. The first is the default."""

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Voice:
    id: str
    description: str
    mix: tuple[float, float, float]  # weights of slt, rms, awb; mixes are clearer than any of the three alone
    pitch: float = 1  # factor of F0
    warp: float = 1  # vocal tract: below 1 shorter, above 1 longer
    rate: float = 1  # pace
    liveliness: float = 1  # factor of F0 excursions about the mean, and of duration variety

    def manifest_entry(self) -> dict[str, object]:
        return {**asdict(self), "mix": list(self.mix), "gain": 1}  # levels.py sets it

    def conversational(self, rate: float, liveliness: float) -> "Voice":
        description = f"{self.description.split(',')[0]}, conversational"
        return Voice(f"{self.id}_conv", description, self.mix, self.pitch, self.warp, rate, liveliness)


WREN = Voice("wren", "Clear alto, calm", (0.5, 0.5, 0.0), 1.12, 0.97)
LARK = Voice("lark", "Bright soprano, friendly", (0.6, 0.4, 0.0), 1.24, 0.93)
ROOK = Voice("rook", "Warm baritone, even", (0.0, 0.8, 0.2))
HERON = Voice("heron", "Deep bass, slow", (0.0, 0.85, 0.15), 0.82, 1.06, 0.95)
FINCH = Voice("finch", "Light tenor, brisk", (0.15, 0.35, 0.5), 1.15, 0.96, 1.04)
JAY = Voice("jay", "Dry tenor, plain", (0.0, 0.4, 0.6), 0.95, 1.02)

VOICES = (
    WREN,
    WREN.conversational(rate=1.1, liveliness=1.35),
    LARK,
    LARK.conversational(rate=1.1, liveliness=1.35),
    ROOK,
    ROOK.conversational(rate=1.12, liveliness=1.4),
    HERON,
    FINCH,
    JAY,
)
