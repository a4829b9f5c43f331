"""How Tailor is called, with small scripts in its place.

    python3 -m unittest discover -s tests/agents
"""

import tempfile
import unittest
from pathlib import Path

import cases


class Called(unittest.TestCase):
    def tailor(self, script):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        program = Path(folder.name) / "tailor"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return str(program)

    def test_an_option_that_it_does_not_know_tries_nothing(self):
        usage = "echo \"error: invalid value 'x' for '--profile <NAME>'\n\nFor more information, try '--help'.\" >&2; exit 2"
        with self.assertRaisesRegex(cases.Misused, "invalid value"):
            cases.ran([self.tailor(usage), "fix", "--profile=x"])

    def test_that_it_broke_down_tries_nothing(self):
        for script in ("exit 101", "kill -9 $$"):
            with self.assertRaises(cases.Misused):
                cases.ran([self.tailor(script)])

    def test_what_it_says_of_a_file_is_a_result(self):
        for code in (0, 1, 2):
            said = cases.ran([self.tailor(f"echo refused; exit {code}")])
            self.assertEqual((said.returncode, said.stdout), (code, "refused\n"))


if __name__ == "__main__":
    unittest.main()
