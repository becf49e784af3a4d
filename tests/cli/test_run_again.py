#!/usr/bin/env python3
# ctest: TIMEOUT 240 COST 20
"""Programs that die: where `varve run` goes on from, when it gives up, and what it knows of their epochs."""
import sys

import run_case
from run_case import EACH, Case


class Again(Case):
    def test_falls_back(self):
        """Dead twice at one epoch, it goes on from the one before."""
        p = self.start(self.program, 40, 20, "25=3:11", options=EACH)
        s = self.finish(p, result=40)
        at = [i for i, e in enumerate(p.heard) if e["event"] == "fallback"]
        self.assertEqual(len(at), 1)
        before = [e["epoch"] for e in p.heard[:at[0]] if e["event"] == "restored"]
        self.assertEqual(before, [before[0]] * 2)
        self.assertEqual(p.heard[at[0]]["epoch"], before[0] - 1)
        self.assertEqual(next(e for e in p.heard[at[0]:] if e["event"] == "restored")["epoch"], before[0] - 1)
        self.assertEqual(s["restarts"], 3)
        (self.store / "a/ended").unlink()
        p = self.start(self.program, 50, 1)  # and what came after it is the newest
        self.assertGreater(self.hear(p, "restored")["epoch"], before[0])
        self.finish(p, result=50)

    def test_falls_back_over_damage(self):
        p = self.start(self.program, 40, 1, "25=5:11", options=(*EACH, "--retries", 1))
        self.finish(p, status=139)
        self.flip(self.commit(23, "a"), 20)
        p = self.start(self.program, 40, 1, "25=5:11", options=("--every", "1h"))
        self.hear(p, "restored", epoch=24)
        self.hear(p, "fallback", epoch=22)
        self.finish(p, result=40)

    def test_no_older_epoch(self):
        """Then the same one is tried while there are retries."""
        p = self.start(self.program, 40, 1, "25=5:11", options=(*EACH, "--retries", 9, "-o", "keep=1"))
        s = self.finish(p, result=40)
        self.assertEqual(s["restarts"], 5)
        self.assertEqual([e["epoch"] for e in p.heard if e["event"] == "restored"], [24] * 5)
        self.assertEqual([e["epoch"] for e in p.heard if e["event"] == "same"], [24] * 2)
        self.assertIn("there is no older one: it is tried again", self.texts(p))

    def test_no_older_epoch_and_no_retries(self):
        p = self.start(self.program, 40, 1, "25=11", options=(*EACH, "--retries", 3, "-o", "keep=1"))
        self.assertEqual(self.finish(p, status=139)["restarts"], 3)
        self.assertIn("restarted 3 times, and is left as it is; the same command begins with epoch 24", self.texts(p))
        p = self.start(self.program, 40, 1, options=EACH)
        self.hear(p, "restored", epoch=24)
        self.finish(p, result=40)
        p = self.start(self.program, 40, 1, "3=-7", options=("--every", "1h", "--retries", 0))  # it had ended well
        self.finish(p, status=7)
        self.assertIn("the same command begins at its start", self.texts(p))

    def test_no_older_whole_epoch(self):
        p = self.start(self.program, 40, 1, "4=11", options=(*EACH, "--retries", 0))
        self.finish(p, status=139)
        for epoch in 1, 2:
            self.flip(self.commit(epoch, "a"), 20)
        p = self.start(self.program, 40, 1, "4=2:11", options=EACH)
        self.assertIn("no older one is intact: it is tried again", self.hear(p, "same", epoch=3)["text"])
        self.finish(p, result=40)

    def test_only_epoch_is_damaged(self):
        """Nothing is tried again: it would be found damaged again."""
        p = self.start(self.program, 40, 1, "4=11", options=(*EACH, "--retries", 0, "-o", "keep=1"))
        self.finish(p, status=139)
        layer = self.layer(3, "a")
        self.flip(layer, layer.stat().st_size // 2)
        p = self.start(self.program, 40, 1)
        self.finish(p, status=76)
        self.assertIn("epoch 3 is damaged, and there is no older one: the program is left as it is", self.texts(p))
        self.assertNotIn("restart", self.words(p))

    def test_dead_before_it_is_restored(self):
        """No epoch answers for that: neither is it left, nor does the command give up."""
        for keep in 0, 1:
            store = self.folder / f"keep {keep}"
            p = self.start(self.program, 40, 1, "12=11", options=(*EACH, "--retries", 0, "-o", f"keep={keep}"), store=store)
            self.finish(p, status=139)
            for mark in self.folder.glob("ended-0-*"):
                mark.unlink()
            p = self.start(self.program, 40, 1, "0=4:9", options=(*EACH, "--retries", 4, "-o", f"keep={keep}"), store=store)
            self.assertEqual(self.finish(p, result=40)["restarts"], 4)
            self.assertEqual([e["epoch"] for e in p.heard if e["event"] == "restored"], [11])
            self.assertFalse({"checking", "fallback", "same", "stopped"} & set(self.words(p)), p.heard)
        p = self.start(self.program, 40, 1, "0=9", options=("--retries", 3, "--restart", 5), store=self.folder / "keep 0")
        self.assertEqual(self.finish(p, status=137)["restarts"], 3)  # they count as any others

    def test_between_deaths_at_one_epoch(self):
        """A death before the restore neither counts against the epoch nor clears it of those that do."""
        p = self.start(self.program, 40, 1, "12=11", options=(*EACH, "--retries", 0))
        self.finish(p, status=139)
        p = self.start(self.program, 40, 1, "0=1:9", "12=2:11", options=EACH)
        self.hear(p, "restored", epoch=11)
        self.hear(p, "restored", epoch=11)
        self.hear(p, "fallback", epoch=10)
        self.finish(p, result=40)

    def test_untold(self):
        """What a program could not tell any more is found in the store."""
        p = self.start(self.program, 20, 1, "5=1:11", "9=1:11", "15=2:11", options=(*EACH, "--retries", 9), env={"RUN_MUTE": "1"})
        s = self.finish(p, result=20)
        self.assertEqual((s["epochs"], s["epochs_measured"], s["restarts"]), (20, 20, 4))
        self.assertEqual(sorted(e["epoch"] for e in p.heard if e["event"] == "durable"), list(range(1, 21)))
        self.assertNotIn("checking", self.words(p))

    def test_dropped_at_once(self):
        """Sizes are told of those that were measured."""
        write = "import os\nopen(os.environ['VARVE_RUN_EVENTS'], 'a').write('durable 77\\ndurable %s\\n')\n"
        self.finish(self.start(self.program, 3, 1, options=EACH), result=3)
        for other, words in ((78, "2 epochs (gone before measured); "), (3, ", of 1 of them; the rest were gone before they were measured); ")):
            p = self.run_raw("run", "-s", self.store, "-l", "a", "--", sys.executable, "-c", write % other)
            self.assertIn(words, p.stderr.decode())

    def test_retries(self):
        p = self.start(self.program, 40, 1, "5=11", options=("--every", "1h", "--retries", 2))
        self.assertEqual(self.finish(p, status=139)["restarts"], 2)
        self.assertEqual(self.steps().count(5), 3)
        p = self.start("sh", "-c", "kill -9 $$", options=("--retries", 0))
        self.assertEqual(self.finish(p, status=137)["restarts"], 0)

    def test_error_at_once(self):
        """An exit with an error at once, before any checkpoint, is repeated by no restart; a crash is, and a later exit."""
        for command in (["sh", "-c", "echo run >> runs; exit 1"], [self.program, 40, 1, "5=-7"]):
            p = self.start(*command, options=("--every", "1h"))
            self.assertEqual(self.finish(p, status=1 if command[0] == "sh" else 7)["restarts"], 0)
            self.assertIn("it is not started again", self.texts(p))
        self.assertEqual((self.folder / "runs").read_text(), "run\n")
        for command, status in (["sh", "-c", "sleep 1.2; exit 1"], 1), (["sh", "-c", "exit 139"], 139):
            p = self.start(*command, options=("--retries", 1))
            self.assertEqual(self.finish(p, status=status)["restarts"], 1)


if __name__ == "__main__":
    run_case.main()
