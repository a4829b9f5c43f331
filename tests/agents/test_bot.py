"""What the table of lives says of a run that is not as expected.

    python3 -m unittest discover -s tests/agents
"""

import tempfile
import unittest
from pathlib import Path

import bot_table

LIVED = dict.fromkeys(bot_table.COLUMNS, "0") | {
    "agent": "pi", "window": "none", "way": "beside", "outcome": "alive", "answered": "42", "turns": "42", "first": "", "doctor": "ok", "undo": "whole",
}  # fmt: skip


class Compared(unittest.TestCase):
    def table(self, row):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        table = bot_table.Table(Path(folder.name) / "bot.tsv")
        table.put(row)
        return bot_table.Table(table.path)

    def test_what_is_as_expected_says_nothing(self):
        self.assertEqual(list(self.table(LIVED).compare(LIVED)), [])

    def test_an_agent_that_lived_and_dies_is_worse(self):
        for outcome, doctor in (("dead", "dead"), ("alive after a restart", "ok")):
            (said,) = self.table(LIVED).compare(LIVED | {"outcome": outcome, "doctor": doctor})
            self.assertTrue(said.startswith("WORSE"), said)

    def test_of_a_short_run_only_death_counts_because_a_busy_machine_looks_late(self):
        lived = LIVED | {"window": "quick"}
        late = lived | {"outcome": "alive after a restart", "answered": "41"}
        self.assertEqual(list(self.table(lived).compare(late)), [])
        self.assertEqual(list(self.table(late).compare(lived)), [])
        (said,) = self.table(late).compare(lived | {"outcome": "dead", "doctor": "dead"})
        self.assertTrue(said.startswith("WORSE"), said)

    def test_an_agent_that_died_and_lives_is_to_be_written_down(self):
        (said,) = self.table(LIVED | {"outcome": "dead"}).compare(LIVED)
        self.assertTrue(said.startswith("BETTER"), said)

    def test_what_may_never_be_is_wrong_whatever_is_expected(self):
        for wrong in ({"lost": "1"}, {"locked": "2"}, {"undo": "3 lines missing, 0 marks"}, {"doctor": "dead"}, {"doctor": "dying"}):
            row = LIVED | wrong
            (said,) = self.table(row).compare(row)
            self.assertTrue(said.startswith("WRONG"), said)


if __name__ == "__main__":
    unittest.main()
