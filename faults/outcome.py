"""What a series of faults came to."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field

Done = subprocess.CompletedProcess[str]


@dataclass
class Outcome:
    """One kind of fault, done to one kind of work.

    Attributes
    ----------
    fault, work : str
        What was done, to what.
    tried : int
        How often.
    refused : int
        How often demix ended with exit code 2 and one sentence, rather than to finish.
    lost : int
        Finished parts of the work (cells, images, files) that were gone afterwards.
    problems : list of str
        What should not have happened: results that are not those of an undisturbed run, to the
        bit; ends without a sentence; processes that were left behind.
    """

    fault: str
    work: str
    tried: int = 0
    refused: int = 0
    lost: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> int:
        """How often something was wrong."""
        return len(self.problems)

    def expect(self, holds: bool, problem: str) -> None:
        """Note a problem unless something holds."""
        if not holds:
            self.problems.append(problem)

    def refusal(self, done: Done, *words: str) -> None:
        """Expect that a command ended with a sentence that has some words in it."""
        self.refused += 1
        lines = done.stderr.strip().splitlines()
        last = lines[-1] if lines else ""
        sentence = done.returncode == 2 and last.startswith("Error: ") and last.endswith(".")
        told = sentence and "Traceback" not in done.stderr and (not words or words_in(last, words))
        self.expect(told, f"{self.work} ended with code {done.returncode} and: {last or 'nothing'}")

    def to_dict(self) -> dict[str, object]:
        """Return everything as plain data."""
        return {
            "fault": self.fault,
            "work": self.work,
            "tried": self.tried,
            "refused": self.refused,
            "lost": self.lost,
            "wrong": self.wrong,
            "problems": self.problems[:10],
        }


def words_in(sentence: str, words: tuple[str, ...]) -> bool:
    """Whether a sentence has one of some words in it."""
    return any(word in sentence for word in words)
