"""Runs the trials of one owner, and says what came of them."""

import json
import shutil
import time

import agents
import rows

RUNNING = ", while it runs"  # such a trial edits between two turns of the running program
KINDS = ("prompts", "replies", "calls", "results")


class Bench:
    """One owner with a home of its own. `trials` names the module that knows what is tried with it."""

    def __init__(self, driver, trials, install, folder, stub):
        self.trials, self.stub, self.folder = trials, stub, folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.agent = driver(install, folder, stub)

    def record(self, quick):
        """The store that all trials begin with, and what sessions it has."""
        self.sessions = self.trials.record(self.agent, only_plain=quick)
        settle(self.agent.path)
        shutil.copytree(self.agent.home, self.folder / "kept", symlinks=True)

    def restore(self):
        shutil.rmtree(self.agent.home)
        shutil.copytree(self.folder / "kept", self.agent.home, symlinks=True)

    def run(self, chosen):
        """[(name, what was expected, what came of it)], one after the other."""
        self.restore()
        made = self.trials.copies(self.agent, self.sessions, chosen)
        for (name, _, edit, _), session in zip(chosen, made):
            if name not in self.trials.LATE and not name.endswith(RUNNING):
                self.edit(edit, session)
        settle(self.agent.path)
        with self.agent.live(next(iter(self.sessions.values()))) as wire:
            for (name, _, edit, expected), session in zip(chosen, made):
                if name.endswith(RUNNING):
                    self.resume(wire, session, 8)  # so that the program has the session in memory
                if name in self.trials.LATE or name.endswith(RUNNING):
                    self.edit(edit, session)
                yield name, expected, self.resume(wire, session)

    def edit(self, edit, session):
        with rows.writing(self.agent.path) as db:
            edit(db, session)

    def resume(self, wire, session, number=9):
        """Has the program go on with a session, and says what the API got."""
        before = len(self.stub.log)
        try:
            self.trials.say(wire, session, f"prompt-{number}: calls=0")
        except agents.Stuck:
            pass  # what the stub got decides
        asked = [a for a in self.stub.log[before:] if a.prompt == number and a.tools]
        good = next((a for a in asked if not a.refused), None)
        if good is None:
            return f"refused: {asked[0].refused}" if asked else "nothing sent"
        images = json.dumps(good.body["messages"]).count('"base64"')
        held = good.held()
        return "accepted " + "/".join(str(len(held[kind])) for kind in KINDS) + (f", {images} image" if images else "")


def settle(path):
    """Checks a store that nobody has open, and puts what its WAL holds into it."""
    db = rows.connect(path)
    try:
        said = db.execute("PRAGMA integrity_check").fetchone()[0]
        if said != "ok":
            raise ValueError(f"{path}: {said}")
        end = time.monotonic() + 10
        while db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] and time.monotonic() < end:
            time.sleep(0.2)
    finally:
        db.close()
