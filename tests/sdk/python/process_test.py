# SPDX-License-Identifier: Apache-2.0
"""How programs end and fork while the library works. The environment is that of mge_test."""
import pathlib
import subprocess
import sys
import unittest

MODEL = pathlib.Path(__file__).resolve().parents[3] / "packaging" / "digits" / "digits.onnx"
BEGIN = """
import asyncio, atexit, os, sys, threading, time
import numpy as np
import mge
x = np.zeros((1, 1, 8, 8), np.float32)
many = np.zeros((2000, 1, 8, 8), np.float32)
s = mge.Session(MODEL, device=DEVICE)
async def gather(count=8, image=x):
    return await asyncio.gather(*[s.run_async(image=image) for _ in range(count)])
"""
TIMES = 5


class ProgramTest(unittest.TestCase):
    def program(self, source, out="", code=0, device="cpu0", times=TIMES):
        """Runs a program several times, and checks its output and exit code."""
        text = BEGIN.replace("MODEL", repr(str(MODEL))).replace("DEVICE", repr(device)) + source
        for _ in range(times):
            self.run_once(text, out, code)

    def run_once(self, text, out, code=0):
        # Python 3.12 warns of forks of a process with threads.
        command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", text]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (code, out, ""))


class Programs(ProgramTest):
    def test_end_after_many_asynchronous_runs(self):
        for device in ("cpu0", "virtual0"):
            self.program("asyncio.run(gather())\nprint('ran')", "ran\n", device=device, times=10)

    def test_end_with_asynchronous_runs_in_progress(self):
        self.program("loop = asyncio.new_event_loop()\n"
                     "loop.set_exception_handler(lambda *_: None)  # tasks that are destroyed in progress\n"
                     "tasks = [loop.create_task(s.run_async(image=many)) for _ in range(8)]\n"
                     "loop.run_until_complete(asyncio.sleep(0.001))\n"
                     "print('ends')", "ends\n")

    def test_end_while_daemon_threads_run(self):
        for image in ("x", "many"):
            self.program("def work():\n"
                         f"  while True: s.run(image={image})\n"
                         "for _ in range(3): threading.Thread(target=work, daemon=True).start()\n"
                         "time.sleep(0.05)", times=5)

    def test_end_when_their_threads_have_ended(self):
        self.program("def work():\n"
                     "  for _ in range(20): s.run(image=x)\n"
                     "  print('worked', flush=True)\n"
                     "threading.Thread(target=work).start()", "worked\n", times=3)

    def test_end_by_sys_exit_in_callbacks(self):
        self.program("async def work():\n"
                     "  task = asyncio.ensure_future(s.run_async(image=x))\n"
                     "  task.add_done_callback(lambda task: sys.exit(3))\n"
                     "  await asyncio.gather(task, gather())\n"
                     "asyncio.run(work())", code=3, times=3)

    def test_may_use_the_library_in_functions_of_atexit(self):
        source = ("import atexit, sys\n"
                  "def late(): print('late', s.run(image=x)['probabilities'].shape)\n"
                  "atexit.register(late)  # runs after those of mge\n")
        text = source + BEGIN.replace("MODEL", repr(str(MODEL))).replace("DEVICE", "'cpu0'") + (
            "atexit.register(lambda: print('early', len(asyncio.run(gather()))))\n")
        for _ in range(3):
            self.run_once(text, "early 8\nlate (1, 10)\n")

    def test_get_messages_of_threads_of_the_library(self):
        self.program("got = []\n"
                     "runtime = mge.Runtime({'log.level': 'debug'}, log=lambda level, text: got.append(threading.current_thread()))\n"
                     "s = mge.Session(s_path, runtime=runtime)\n".replace("s_path", repr(str(MODEL))) +
                     "asyncio.run(gather())\n"
                     "os.fork() or os._exit(0)\n"
                     "os.wait()\n"
                     "print(bool(got))", "True\n", times=5)


class Forks(ProgramTest):
    CHILD = ("pid = os.fork()\n"
             "if pid == 0:\n"
             "  s.run(image=x)\n"
             "  asyncio.run(gather())\n"
             "  s.close()\n"
             "  os._exit(0)\n"
             "print(os.waitpid(pid, 0)[1], s.run(image=x)['probabilities'].shape)\n")

    def test_work_after_asynchronous_runs(self):
        self.program("asyncio.run(gather())\n" + self.CHILD, "0 (1, 10)\n")

    def test_work_within_an_event_loop(self):
        self.program("async def work():\n"
                     "  tasks = [asyncio.ensure_future(s.run_async(image=many)) for _ in range(4)]\n"
                     "  await asyncio.sleep(0)\n"
                     "  pid = os.fork()\n"
                     "  if pid == 0: os._exit(0)\n"
                     "  await asyncio.gather(*tasks)\n"
                     "  print(os.waitpid(pid, 0)[1])\n"
                     "asyncio.run(work())", "0\n")

    def test_work_while_threads_run(self):
        self.program("stop = False\n"
                     "def work():\n"
                     "  while not stop: s.run(image=x)\n"
                     "threads = [threading.Thread(target=work) for _ in range(2)]\n"
                     "for t in threads: t.start()\n"
                     "time.sleep(0.02)\n" + self.CHILD +
                     "stop = True", "0 (1, 10)\n", times=5)

    def test_work_for_data_loaders_after_an_asynchronous_run(self):
        self.program("asyncio.run(gather(1))\n"
                     "data = mge.data.ArrayDataset(np.zeros((8, 1, 8, 8), np.float32))\n"
                     "loader = mge.data.DataLoader(data, 4, workers=1)\n"
                     "print([s.run(image=batch)['probabilities'].shape for batch in loader])", "[(4, 10), (4, 10)]\n", times=5)

    def test_let_a_new_runtime_use_every_device(self):
        self.program("s.run(image=x)\n"
                     "pid = os.fork()\n"
                     "if pid == 0:\n"
                     "  try:\n"
                     "    s.run(image=x)\n"
                     "    os._exit(1)\n"
                     "  except mge.DeviceError as error:\n"
                     "    assert 'fork' in str(error), error\n"
                     "  with mge.Runtime() as runtime:\n"
                     "    for device in ('virtual0', 'virtual1', 'cpu0'):\n"
                     "      with mge.Session(PATH, device=device, runtime=runtime) as other:\n"
                     "        assert other.run(image=x)['probabilities'].shape == (1, 10)\n"
                     "        asyncio.run(other.run_async(image=x))\n"
                     "    from mge import eager\n"
                     "    eager.Eager(runtime=runtime).tensor([1.0], device='virtual0').numpy()\n"
                     "  s.close()\n"
                     "  os._exit(0)\n"
                     "print(os.waitpid(pid, 0)[1], s.run(image=x)['probabilities'].shape)\n".replace("PATH", repr(str(MODEL))),
                     "0 (1, 10)\n", device="virtual0", times=3)


class ChangedVariables(ProgramTest):
    def test_hold_for_later_sessions_and_operators(self):
        self.program("""
from mge import eager
def cast():
    return int(eager.ops.Cast(eager.tensor(np.float32([300])), to=2).numpy()[0])
print(cast())
os.environ["MGE_NUMERICS_CAST"] = "wrap"
print(cast(), mge.default_runtime().get("numerics.cast"))
os.environ["MGE_NUMERICS_CAST"] = "round"
try:
    mge.Session(MODEL)
except mge.UsageError as error:
    print(error.title)
del os.environ["MGE_NUMERICS_CAST"]
mge.Session(MODEL)
print(cast(), mge.default_runtime().get("numerics.cast"))
""".replace("MODEL", repr(str(MODEL))), """255
44 wrap
MGE_NUMERICS_CAST = "round" is not one of saturate, wrap
255 saturate
""", times=1)


if __name__ == "__main__":
    unittest.main()
