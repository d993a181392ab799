"""Tasks in a process of their own, so that peaks of memory and imports are theirs alone."""

import resource
from multiprocessing import get_context
from pathlib import Path


def in_fresh_process(task, *args, cap=None):
    """What `task(*args)` returns in a new process; None if it takes longer than `cap` seconds."""
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(theirs, task, args))
    process.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(cap) else None
    except EOFError:
        raise SystemExit(f"{task.__name__}{args} died with exit code {process.exitcode}.") from None
    finally:
        process.kill()
        process.join()


def _answer(pipe, task, args):
    pipe.send(task(*args))


def resident_bytes():
    """Memory of this process now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def peak_bytes():
    """Most memory that this process has had; ru_maxrss would begin with the parent's."""
    return 1024 * int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
