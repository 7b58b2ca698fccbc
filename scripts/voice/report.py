"""Lines of figures: the voice's, the person's, and the bar."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bar:
    """The range that a figure must lie in."""

    least: float = float("-inf")
    most: float = float("inf")

    def holds(self, value: float) -> bool:
        return self.least <= value <= self.most

    def __str__(self) -> str:
        if self.least == float("-inf"):
            return f"<= {self.most:.4g}"
        return f">= {self.least:.4g}" if self.most == float("inf") else f"{self.least:.4g} to {self.most:.4g}"


def within(person: float, margin: float) -> Bar:
    return Bar(person - margin, person + margin)


class Report:
    """Prints each line as it comes, and remembers which bars were missed."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.missed: list[str] = []
        self.bars = 0
        self._heading = ""

    def note(self, text: str) -> None:
        self.lines.append(text)
        print(text, flush=True)

    def heading(self, text: str) -> None:
        self._heading = text
        self.note(f"\n-- {text}")
        self.note(f"{'':<62} {'voice':>9} {'person':>9}  unit")

    def figure(self, name: str, value: float, unit: str = "", bar: Bar | None = None, person: float | None = None) -> None:
        beside = "" if person is None else f"{person:.4g}"
        verdict = ""
        if bar is not None:
            self.bars += 1
            verdict = f"  ({bar}: {'met' if bar.holds(value) else 'MISSED'})"
            if not bar.holds(value):
                self.missed.append(f"{self._heading}: {name} {value:.4g} {unit}, bar {bar}")
        self.note(f"{name:<62} {value:>9.4g} {beside:>9}  {unit}{verdict}")

    def summary(self) -> None:
        self.note(f"\n{self.bars - len(self.missed)} of {self.bars} bars met")
        for line in self.missed:
            self.note(f"missed: {line}")
