# SPDX-License-Identifier: Apache-2.0
"""Random programs: threads run sessions that others close, and the program ends at any time. The environment is that of mge_test.
RANDOM_PROGRAMS is their number, and RANDOM_SEED the first seed."""
import os
import pathlib
import subprocess
import sys
import unittest

MODEL = pathlib.Path(__file__).resolve().parents[3] / "packaging" / "digits" / "digits.onnx"
PROGRAM = """
import asyncio, gc, os, random, sys, threading, time, traceback
import numpy as np
import mge
random = random.Random(SEED)
ending = False
images = [np.zeros((count, 1, 8, 8), np.float32) for count in (1, 1, 3, 200)]


def new():
    settings = random.choice([None, {"engine.bulk_inference": False}])
    return mge.Session(MODEL, device=random.choice(["cpu0", "cpu0", "virtual0", "virtual0,cpu0"]),
                       threads=random.choice([0, 1, 2]), settings=settings)


async def gather(session, image):
    return await asyncio.gather(*[session.run_async(image=image) for _ in range(4)])


def work(kept=None):
    while True:
        session, image = random.choice(sessions), random.choice(images)
        try:
            action = random.randrange(8)
            if action == 0: asyncio.run(gather(session, image))
            elif action == 1: session.plan(image)
            elif action == 2: session.run(image), session.memory()
            elif action == 3: kept = mge.Tensor(image)
            elif action == 4: session.run(kept if kept is not None else image)
            else: session.run(image)
        except mge.ClosedError:
            pass
        except BaseException:
            if ending: return  # Python ends threads anywhere
            traceback.print_exc()
            os._exit(1)


sessions = [new() for _ in range(3)]
for _ in range(random.randrange(5)): threading.Thread(target=work, daemon=True).start()
for _ in range(random.randrange(20)):
    time.sleep(random.random() * 0.01)
    action, i = random.randrange(6), random.randrange(3)
    if action == 0: sessions[i].close()
    elif action == 1: sessions[i] = new()
    elif action == 2: gc.collect()
    elif action == 3 and os.fork() == 0: os._exit(len(mge.Runtime().devices()) == 0)
    elif action == 4: mge.eager.apply("Add", images[0], images[1]).numpy()
ending, end = True, random.randrange(4)
if end == 0: sys.exit(7)
if end == 1: os._exit(7)
if end == 2: del sessions[:2]; sys.exit(7)
asyncio.run(gather(new(), images[0]))
sys.exit(7)
"""


class Programs(unittest.TestCase):
    def test_of_any_kind_end_with_their_exit_code(self):
        count = int(os.environ.get("RANDOM_PROGRAMS", "6"))
        first = int(os.environ.get("RANDOM_SEED", "1"))
        for seed in range(first, first + count):
            text = PROGRAM.replace("SEED", str(seed)).replace("MODEL", repr(str(MODEL)))
            ended = subprocess.run([sys.executable, "-W", "ignore", "-c", text], capture_output=True, text=True, timeout=120)
            self.assertEqual((ended.returncode, ended.stdout), (7, ""), f"seed {seed}\n{ended.stderr}")
            for line in ("Fatal", "terminate called"):
                self.assertNotIn(line, ended.stderr, f"seed {seed}")


if __name__ == "__main__":
    unittest.main()
